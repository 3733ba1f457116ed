"""`fairseq-ext list` shows what is registered, and the options of one entry."""

import json
import subprocess
import sys

from tools.commandline import REPOSITORY

from fairseq_ext import __main__ as command
from fairseq_ext.tools.installation import listing


def test_list_shows_everything_that_is_registered(run):
    from fairseq.registry import REGISTRIES

    # every registry that fairseq has, and the two that are older
    assert set(filter(None, listing.KINDS.values())) == set(REGISTRIES)
    assert {kind for kind, registry in listing.KINDS.items() if registry is None} == {
        "architectures",
        "tasks",
    }
    for kind, registry in listing.registries().items():
        ours = {n for n, c in registry.items() if c.__module__.startswith("fairseq_ext.")}
        listed = [e["name"] for kinds in listing.catalogue().values() for e in kinds[kind]]
        assert sorted(listed) == sorted(ours)
    output = subprocess.run(
        [sys.executable, "-m", "_fairseq_ext_cli", "list", "--json"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    assert json.loads(output) == listing.catalogue()
    text = "\n".join(listing.lines(listing.catalogue()))
    for system, kinds in listing.catalogue().items():
        assert f"\n{system}\n" in f"\n{text}\n"
        assert all(entry["name"] in text for kind in kinds.values() for entry in kind)


def test_list_leaves_out_what_is_not_ours():
    from fairseq.tasks import TASK_REGISTRY

    assert listing.system_of(TASK_REGISTRY["translation"]) is None


def test_list_shows_the_options_of_one(capsys):
    assert command.main(["list", "dual_transformer_tiny"]) == 0
    text = capsys.readouterr().out
    assert "--share-all-embeddings" in text and "preset by dual_transformer_tiny: --embed" in text
    text = listing.options("twin_transformer_iwslt_de_en")
    _, _, preset = text.partition("preset by twin_transformer_iwslt_de_en: ")
    assert "--encoder-ffn-embed-dim 1024 " in preset and "--encoder-layerdrop 0 " in preset
    assert " None" not in preset and " False" not in preset
    assert command.main(["list", "dual_translation"]) == 0
    text = capsys.readouterr().out
    assert "--lang-pairs" in text and "default: joint" in text


def test_list_shows_the_defaults_that_an_architecture_has():
    words = " ".join(listing.options("dual_transformer_tiny").split())
    # its own, and where it has none that of the model
    assert "4096) (default: 128)" in words and "attention weights (default: 0.0)" in words
    assert "(default: 2048)" in " ".join(listing.options("dual_transformer").split())
    assert "default: None" not in words and "${" not in words


def test_every_entry_has_its_page(capsys):
    """`list NAME` knows whatever the suite registers, an optimizer too."""
    names = {e["name"] for kinds in listing.catalogue().values() for k in kinds.values() for e in k}
    assert {"fused_adam", "twin", "routed_mtl", "multiway_gru"} <= names
    for name in names:
        assert f" {name}: " in listing.options(name)
    assert command.main(["list", "fused_adam"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("optimizer fused_adam: ") and "--adam-betas" in text


def test_an_entry_without_options(monkeypatch):
    """Scorers need no ``add_args``."""
    scorer = type("Scorer", (), {"__doc__": "Count words.", "__module__": listing.__name__})
    monkeypatch.setitem(listing.registries()["scorers"], "word_count", scorer)
    assert listing.options("word_count").strip() == "scorer word_count: Count words"


def test_list_refuses_what_is_not_ours(capsys):
    assert command.main(["list", "translation"]) == 2
    message = capsys.readouterr().err
    assert "NAME 'translation' is unknown" in message and "dual_translation" in message
