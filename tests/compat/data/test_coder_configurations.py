"""Sub-word coders without a configuration."""

from argparse import Namespace

import pytest


def coder_of(name):
    """The sub-word coder that a command builds for --bpe."""
    from fairseq import options
    from fairseq.data.encoders import build_bpe
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    words = ["data", "--path", "model.pt", "--bpe", name]
    parsed = options.parse_args_and_arch(options.get_generation_parser(), words)
    return build_bpe(convert_namespace_to_omegaconf(parsed).bpe)


@pytest.mark.parametrize("bpe, coded", [("characters", "a b \u2581 c"), ("bytes", None)])
def test_coders_have_configurations(bpe, coded):
    coder = coder_of(bpe)
    assert coder.decode(coder.encode("ab c")) == "ab c"
    assert coded is None or coder.encode("ab c") == coded


def test_coders_of_plugins_have_configurations():
    from fairseq.data.encoders import BPE_REGISTRY, build_bpe, register_bpe

    class Marking:
        def __init__(self, args):
            self.mark = getattr(args, "mark", "@")

        def encode(self, text):
            return text.replace(" ", f" {self.mark} ")

    name = "marking"
    if name not in BPE_REGISTRY:
        register_bpe(name)(Marking)
    assert coder_of(name).encode("a b") == "a @ b"
    # a task that builds it of its own options still gives them to it
    assert build_bpe(Namespace(bpe=name, mark="#")).encode("a b") == "a # b"


@pytest.mark.parametrize(
    "words, files, languages",
    [
        ([], ["train.de-fr.de.idx"], ("de", "fr")),
        (["-s", "fr", "-t", "de"], ["train.de-fr.de.idx"], ("fr", "de")),
        (["-t", "it"], ["train.de-fr.de.idx"], ("de", "it")),
        ([], [], ("en", "en")),  # the tokenizer's defaults
    ],
)
def test_tokenizers_find_their_languages(tmp_path, words, files, languages):
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    for name in files:
        (tmp_path / name).touch()
    words = [str(tmp_path), "--path", "model.pt", "--tokenizer", "moses", *words]
    parsed = options.parse_args_and_arch(options.get_generation_parser(), words)
    cfg = convert_namespace_to_omegaconf(parsed)
    assert (cfg.tokenizer.source_lang, cfg.tokenizer.target_lang) == languages
    assert cfg.task.source_lang == parsed.source_lang  # which the task finds itself
