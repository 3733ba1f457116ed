"""duo_transformer: shared properties, parameters, embeddings from files, errors of bad input."""

import pytest
import torch
from common.toy import WordDictionary
from duo.support import ROWS, size_of
from duo.support import reference as duo_reference
from streams.directions import (
    CHECKS,
    END,
    randomise,
    save_and_load,
    some_rows,
    two_in_one_search,
)
from torch import nn
from toy_sentences import PAD

from fairseq_ext.duo.transformer.model import DuoTargetSide, DuoTransformerModel
from fairseq_ext.duo.transformer.modules import DuoDecoder, DuoEmbedding, DuoEncoder
from fairseq_ext.streams.direction import SourceSide
from properties import check_gradient_everywhere

OFF = "off"


def model_of(row):
    """A random model of a row of Table 6, P narrower than the states."""
    streams, *switches = ROWS[row]
    shape = duo_reference.Shape(8, 12, 2, 2, (8, 6)[:streams], *switches)
    words = WordDictionary()
    sides = []
    for module, side in ((DuoEncoder, SourceSide), (DuoDecoder, DuoTargetSide)):
        tables = [nn.Embedding(len(words), width, PAD) for width in shape.widths]
        sides.append(side(module(size_of(shape), DuoEmbedding(tables, 8)), words, 50))
    model = randomise(DuoTransformerModel(*sides))
    with torch.no_grad():
        for side in sides:
            for table in side.module.embedding.tables:
                table.weight.normal_()
    return model


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("row", ["fusion", "norm-everywhere"])
def test_properties(row, check):
    check(model_of(row))


def test_output_matrices_without_fusion_are_of_their_models():
    two_in_one_search(model_of("meta-embeddings"))


def test_save_and_load():
    save_and_load(model_of("fusion"))


@pytest.mark.parametrize("name, check", [("only S", "stepwise"), ("nothing", "beam_reorder")])
def test_a_stream_without_its_cache_would_be_noticed(name, check, monkeypatch):
    """Broken twins: P's past is forgotten at each step; beams do not move what is cached."""
    model = model_of("fusion")
    if check == "beam_reorder":
        monkeypatch.setattr(
            DuoTargetSide, "reorder_incremental_state", lambda self, state, order: None
        )
    else:
        real = DuoDecoder.decode

        def forgetful(self, prev, context, padding, cache=None, need_weights=False):
            for place in [key for key in cache or {} if ".1." in key and "context" not in key]:
                del cache[place]
            return real(self, prev, context, padding, cache, need_weights)

        monkeypatch.setattr(DuoDecoder, "decode", forgetful)
    (check_model,) = (function for function in CHECKS if function.__name__ == check)
    with pytest.raises((AssertionError, RuntimeError)):
        check_model(model)


def test_loss_reaches_every_parameter():
    model = model_of("fusion").train()
    scores, _ = model(some_rows([4, 3], 1), None, some_rows([5, 2], 2))
    named = [
        (name, parameter) for name, parameter in model.named_parameters() if "tables" not in name
    ]
    check_gradient_everywhere(scores.log_softmax(dim=-1)[..., END].sum(), named)


def counted(words, width, inner, layers, row):
    """Closed formula: both embeddings of both sides are D wide."""
    streams, share_kv, _, fusion = ROWS[row]
    maps = 2 + (1 if share_kv else 2)
    attention = streams * maps * (width * width + width)
    norms = streams * 2 * width
    feed_forward = 2 * width * inner + inner + width + 2 * width
    total = layers * (3 * (attention + norms) + 2 * feed_forward) + streams * sum(words) * width
    return total + (2 * (2 * width) * width if fusion else 0)


@pytest.mark.parametrize("row", ["transformer", "meta-embeddings", "share-kv", "fusion"])
def test_number_of_parameters_is_the_closed_formula(duo, row):
    streams, share_kv, norm, fusion = ROWS[row]
    flags = ["--duo-norm", norm]
    for name, value in (
        ("meta-embeddings", streams == 2),
        ("share-kv", share_kv),
        ("fusion", fusion),
    ):
        flags += [f"--duo-{name}", "on" if value else OFF]
    _, task, model = duo(*flags)
    words = len(task.source_dictionary), len(task.target_dictionary)
    assert sum(parameter.numel() for parameter in model.parameters()) == counted(
        words, 12, 20, 2, row
    )


def vectors(path, words, width):
    lines = [f"{word} {' '.join(str(float(n + i)) for i in range(width))}\n" for n, word in words]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("arch", ["duo_transformer", "duo_transformer_tiny"])
def test_embeddings_from_files(build, arch, tmp_path):
    """Widths of the files, one scale for a set, frozen; checkpoints keep widths, not paths."""
    file = vectors(tmp_path / "p.txt", [(1, "xx0"), (2, "xx3"), (5, "other")], 5)
    flags = ["--embed-path-p", file, "--freeze-embeddings", "--embed-dim-s", 7, "--layers", 1]
    cfg, task, model = build(arch, *flags)
    s, p = model.encoder.module.embedding.tables
    assert (s.embedding_dim, p.embedding_dim) == (7, 5)
    assert s.weight.requires_grad and not p.weight.requires_grad
    rows = p.weight[[task.source_dictionary.index(word) for word in ("xx0", "xx3")]]
    expected = torch.tensor([[1.0, 2, 3, 4, 5], [2, 3, 4, 5, 6]])
    torch.testing.assert_close(rows, expected / (expected.square().mean() * 5).sqrt())
    torch.testing.assert_close(rows.square().mean(), torch.tensor(0.2))
    assert cfg.model.embed_path_p is None and cfg.model.embed_dim_p == 5
    file.unlink()
    again = task.build_model(cfg.model)
    again.load_state_dict(model.state_dict())


def test_shared_embeddings(duo):
    _, _, model = duo("--share-all-embeddings", languages=("-s", "xx", "-t", "xx"))
    assert model.encoder.module.embedding is model.decoder.module.embedding


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--duo-meta-embeddings", OFF], "--duo-share-kv on: needs --duo-meta-embeddings on"),
        (["--share-all-embeddings"], r"--share-all-embeddings: .*\(13 entries\).*\(15 entries\)"),
        (["--embed-dim-p", 0], "--embed-dim-p 0: must be at least 1"),
        (
            ["--target-embed-path-s", "nowhere.txt"],
            "--target-embed-path-s nowhere.txt: there is no such file",
        ),
        (["--attention-heads", 5], "--attention-heads 5: must divide"),
    ],
)
def test_bad_options_name_themselves(duo, flags, message):
    with pytest.raises(ValueError, match=message):
        duo(*flags)
