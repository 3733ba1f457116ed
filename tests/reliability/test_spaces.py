"""Every path may hold a space, also where a command starts other processes."""

import shutil
import sys
from pathlib import Path

import pytest

TINY = ["--arch", "dual_transformer_tiny", "--embed-dim", 16, "--ffn-embed-dim", 24, "--layers", 1]
TINY += ["--attention-heads", 2, "--optimizer", "adam", "--max-update", 2, "--batch-size", 8]


@pytest.fixture
def folder(tmp_path, toy_corpus, user_dir):
    """A folder "sp ace" that holds the package and text."""
    folder = tmp_path / "sp ace"
    shutil.copytree(user_dir, folder / "fairseq_ext", ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copytree(toy_corpus.text, folder / "my text")
    return folder


@pytest.mark.slow
def test_commands_take_paths_with_spaces(run, folder):
    """With processes for text, for batches, for workers and for `fairseq-ext run`."""
    data, models, results = folder / "my data", folder / "my models", folder / "my results"
    languages = ["-s", "xx", "-t", "yy"]
    command = ["fairseq-preprocess", *languages, "--joined-dictionary", "--destdir", data]
    for split in ("train", "valid", "test"):
        command += [f"--{split}pref", folder / "my text" / split]
    run(*command, "--workers", 2)
    task = [data, "--user-dir", folder / "fairseq_ext", "--task", "dual_translation", *languages]
    train = [*task, *TINY, "--save-dir", models, "--cpu", "--log-file", folder / "my log"]
    run("fairseq-ext", "run", "fairseq-train", *train, "--num-workers", 2)
    launcher = ["python", "-m", "torch.distributed.run", "--nproc_per_node", 2]
    launcher += ["--standalone", Path(sys.executable).parent / "fairseq-train"]
    backend = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
    backend += ["--distributed-no-spawn", "--distributed-world-size", 2]
    run(*launcher, *train, *backend, "--max-update", 4)
    use = [*task, "--path", models / "checkpoint_last.pt", "--cpu", "--batch-size", 8]
    run("fairseq-generate", *use, "--results-path", results, "--gen-subset", "valid")
    assert "BLEU" in (results / "generate-valid.txt").read_text(encoding="utf-8")
    source = folder / "my text" / "valid.xx"
    output = run("fairseq-interactive", *use, "--buffer-size", 8, "--input", source)
    assert "\nH-1\t" in output
    assert (folder / "my log").stat().st_size > 0


@pytest.mark.slow
def test_hydra_takes_paths_with_spaces(run, folder, toy_corpus):
    """fairseq-hydra-train, whose words are hydra's."""
    data = folder / "my data"
    data.mkdir()
    shutil.copy(toy_corpus.two / "dict.xx.txt", data / "dict.txt")
    for path in toy_corpus.two.glob("*.xx-yy.xx.*"):
        shutil.copy(path, data / path.name.replace(".xx-yy.xx", ""))
    words = ["task=language_modeling", f"task.data='{data}'", "task.tokens_per_sample=32"]
    words += ["model=transformer_lm", "model.decoder_layers=1", "model.decoder_embed_dim=16"]
    words += ["model.decoder_ffn_embed_dim=16", "model.decoder_attention_heads=2"]
    words += ["criterion=cross_entropy", "optimizer=adam", "lr_scheduler=fixed"]
    words += ["optimization.lr=[0.001]", "optimization.max_update=1", "dataset.max_tokens=400"]
    words += ["common.cpu=true"]
    words += [f"checkpoint.save_dir='{folder / 'my models'}'", "checkpoint.no_save=true"]
    words += [f"hydra.run.dir='{folder / 'my outputs'}'"]
    assert "done training" in run("fairseq-hydra-train", *words, cwd=folder)
