"""What people do when they meet the errors of docs/fairseq-today.md, and what comes of each.

    python error_probes.py DATA FOLDER

Prints a JSON object {name: the error, or null}. `tests/test_fairseq_today.py` runs it with all
patches, and without those of PATCHES.
"""

import argparse
import contextlib
import io
import json
import sys
from pathlib import Path

# the patches without which the errors come, and those that would say something else before
PATCHES = (
    "bf16_without_tpu",
    "checkpoints_hold_data_only",
    "checkpoints_say_what_is_wrong",
    "denoising_shares_options",
    "edit_paths_without_extension",
    "encoder_layers_without_copies",
    "local_rank_with_hyphen",
    "no_version_has_a_fused_path",
    "numpy_int32_offsets",
    "numpy_old_names",
    "older_tasks_have_their_options",
    "options_are_in_their_ranges",
    "options_compose_under_any_version_base",
    "plugins_have_former_names_of_numpy",
    "score_with_sacrebleu_and_by_sentence",
)
TINY = """--arch transformer --share-all-embeddings --encoder-layers 1 --encoder-embed-dim 16
--encoder-ffn-embed-dim 16 --decoder-layers 1 --decoder-embed-dim 16 --decoder-ffn-embed-dim 16
--encoder-attention-heads 2 --decoder-attention-heads 2 --optimizer adam --lr 1e-3 --max-tokens 400
--max-update 1 --no-save --cpu --disable-validation""".split()


def options(data, *more):
    """The configuration of fairseq-train for a tiny model."""
    from fairseq import options as fairseq_options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    parser = fairseq_options.get_training_parser()
    words = [data, "-s", "xx", "-t", "yy", *TINY, *more]
    return convert_namespace_to_omegaconf(fairseq_options.parse_args_and_arch(parser, words))


def version_base(data, folder):
    from hydra import version

    before = version.VersionBase.instance().version_base
    version.setbase("1.3")
    try:
        options(data)
    finally:
        version.VersionBase.instance().version_base = before


def numpy_float(data, folder):
    import torch
    from fairseq.modules.dynamic_crf_layer import DynamicCRF

    layer = DynamicCRF(8, 4, beam_size=4)
    layer(torch.randn(1, 3, 8), torch.tensor([[4, 5, 2]]), torch.ones(1, 3, dtype=torch.bool))


def percentile(data, folder):
    import numpy
    from fairseq.data.data_utils import get_buckets

    get_buckets(numpy.array([3, 5, 5, 9]), 2)


def large_data(data, folder):
    """Two sentences, the first of 2 GiB; the file has no content on the disk."""
    import numpy
    from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder

    builder = MMapIndexedDatasetBuilder(folder / "large.bin", dtype=numpy.int64)
    builder._sizes = [numpy.int32(2**28), numpy.int32(1)]
    builder.finalize(folder / "large.idx")
    with open(folder / "large.bin", "r+b") as file:
        file.truncate(2**31 + 8)
    assert MMapIndexedDataset(str(folder / "large"))[1].tolist() == [0]


def weights_only(data, folder):
    import numpy
    import torch
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu
    from fairseq.data import Dictionary

    state = {
        "args": argparse.Namespace(arch="transformer", task="translation"),
        "model": {},
        "optimizer_history": [{"criterion_name": "C", "best_loss": 3.0, "num_updates": 1}],
        "extra_state": {"best": numpy.float64(2), "train_iterator": {"epoch": 1}},
        "task_state": {"dictionary": Dictionary()},
    }
    torch.save(state, folder / "old.pt")
    assert load_checkpoint_to_cpu(str(folder / "old.pt"))["extra_state"]["best"] == 2


def mask_type(data, folder):
    import torch
    from fairseq.models.transformer import TransformerConfig
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    cfg = TransformerConfig()
    cfg.encoder.embed_dim, cfg.encoder.ffn_embed_dim, cfg.encoder.attention_heads = 8, 12, 2
    layer = TransformerEncoderLayerBase(cfg)
    layer.load_state_dict(layer.state_dict())
    layer.eval()
    with torch.no_grad():
        layer(torch.randn(3, 1, 8), torch.tensor([[True, False, False]]))


def bf16(data, folder):
    from fairseq_cli import train

    train.main(options(data, "--bf16"))


def local_rank(data, folder):
    sys.argv[0] = "fairseq-train"
    assert options(data, "--local-rank=0").distributed_training.device_id == 0


def sacrebleu(data, folder):
    from fairseq_cli import score

    (folder / "text").write_text("a b c d e\n", encoding="utf-8")
    words = ["--sacrebleu", "--sys", folder / "text", "--ref", folder / "text"]
    sys.argv[1:] = [str(word) for word in words]
    score.cli_main()


def denoising(data, folder):
    from fairseq import options as fairseq_options

    words = [data, "--task", "denoising", "--arch", "bart_base"]
    fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), words)


def mbart(data, folder):
    from fairseq import options as fairseq_options
    from fairseq.tasks import setup_task

    words = [data, "--task", "translation_from_pretrained_bart", "--langs", "xx,yy"]
    words += ["-s", "xx", "-t", "yy", "--arch", "mbart_base"]
    parser = fairseq_options.get_training_parser()
    task = setup_task(fairseq_options.parse_args_and_arch(parser, words))
    task.load_dataset("valid")


def libnat(data, folder):
    import torch
    from fairseq.models.nat import levenshtein_utils

    words = torch.tensor([[0, 5, 2]])
    levenshtein_utils._get_ins_targets(words, words, 1, 3)


PROBES = (
    *(version_base, numpy_float, percentile, large_data, weights_only, mask_type),
    *(bf16, local_rank, sacrebleu, denoising, mbart, libnat),
)


def outcome(probe, data, folder):
    """The error of a probe as Python prints it, or what a command printed last; None if none."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            probe(data, folder)
    except SystemExit:
        return printed.getvalue().splitlines()[-1]
    except Exception as error:  # noqa: BLE001  (every error is the answer)
        kind = type(error)
        name = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        return f"{name}{kind.__name__}: {error}"
    return None


if __name__ == "__main__":
    _, data, folder = sys.argv
    print(json.dumps({p.__name__: outcome(p, data, Path(folder)) for p in PROBES}))
