"""simultaneous_translation (fairseq_ext/compat/examples/simultaneous.py)."""

import sys
from argparse import ArgumentParser, Namespace
from types import ModuleType

import numpy as np
import pytest
import torch
from common.words import numbered_words

from fairseq_ext.compat.examples import simultaneous
from fairseq_ext.compat.examples.simultaneous import expected_alignment_from_p_choose
from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.compat.versions import byte_masks
from fairseq_ext.compat.versions.missing_files import MISSING_PACKAGE

WORDS = 20
REGISTERED = {}  # {name of a registry: what the import of the example has put there}
OLDER = ("MonotonicAttention", "TransformerMonotonicDecoder")  # classes of earlier versions
SIZES = {
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_embed_dim": 8,
    "decoder_embed_dim": 8,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "dropout": 0.0,
}
ATTENTION = {
    "mass_preservation": True,
    "attention_eps": 1e-6,
    "noise_type": "flat",
    "noise_mean": 0.0,
    "noise_var": 1.0,
    "energy_bias": False,
    "energy_bias_init": -2.0,
    "waitk_lagging": 2,
    "mocha_chunk_size": 2,
    "fixed_pre_decision_ratio": 3,
    "fixed_pre_decision_type": "last",
    "fixed_pre_decision_pad_threshold": 0.3,
}
KINDS = (
    "hard_aligned",
    "infinite_lookback",
    "waitk",
    "chunkwise",
    "hard_aligned_fixed_pre_decision",
    "infinite_lookback_fixed_pre_decision",
    "waitk_fixed_pre_decision",
)


@pytest.fixture
def models(example):
    """The example's module of models; its registry, and what stands in for files, go afterwards."""
    from fairseq.registry import REGISTRIES

    # its source names masks of bytes, for which a process with a plugin changes torch.Tensor
    methods = {name: getattr(torch.Tensor, name) for name in byte_masks.MASKED}
    example("simultaneous_translation", "")
    for name, method in methods.items():
        setattr(torch.Tensor, name, method)
    # an import registers once in a process
    REGISTRIES["simul_type"] = REGISTERED.setdefault("simul_type", REGISTRIES.get("simul_type"))
    yield sys.modules["examples.simultaneous_translation.models.transformer_monotonic_attention"]
    del REGISTRIES["simul_type"]
    for name in [name for name in sys.modules if name.startswith(MISSING_PACKAGE)]:
        del sys.modules[name]


@pytest.fixture
def build(models):
    """Function (kind, further options) -> a model of two layers."""

    def build(kind, left_pad_source=False, **options):
        torch.manual_seed(1)
        words = numbered_words(WORDS)
        cfg = Namespace(left_pad_source=left_pad_source)
        task = Namespace(source_dictionary=words, target_dictionary=words, cfg=cfg)
        args = Namespace(**{**SIZES, **ATTENTION, **options}, simul_type=kind, arch="monotonic")
        models.base_monotonic_architecture(args)
        return models.TransformerModelSimulTrans.build_model(args, task).eval()

    return build


def sentences(*lengths):
    """Sentences of so many words, the last being the end, with padding behind it."""
    tokens = torch.arange(len(lengths) * max(lengths)).view(len(lengths), -1) + 4
    for row, length in zip(tokens, lengths):
        row[length - 1] = 2
        row[length:] = 1
    return tokens


def aligned(chosen):
    """The recurrence of Raffel et al. (2017) in float64: (T, S) of (T, S), position by position.

    q[i, j] is the probability to inspect source position j for target position i.
    """
    steps, positions = chosen.shape
    before = np.eye(1, positions)[0]
    alpha = np.zeros_like(chosen)
    for i in range(steps):
        inspected = 0.0
        for j in range(positions):
            passed = (1 - chosen[i, j - 1]) * inspected if j else 0.0
            inspected = passed + before[j]
            alpha[i, j] = chosen[i, j] * inspected
        before = alpha[i]
    return alpha


def test_alignments_are_those_of_the_paper():
    chosen = np.random.default_rng(1).random((3, 5, 6))
    padding = np.array([[False] * 6, [False] * 4 + [True] * 2, [False] * 6])
    result = expected_alignment_from_p_choose(torch.tensor(chosen), torch.tensor(padding))
    assert result.dtype == torch.float64
    expected = [aligned(row * ~mask) for row, mask in zip(chosen, padding)]
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-5)


def test_certain_choices_and_half_precision():
    chosen = torch.tensor([[[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]])
    assert expected_alignment_from_p_choose(chosen).tolist() == [[[0, 1, 0], [0, 0, 1]]]
    halves = expected_alignment_from_p_choose(torch.full((1, 2, 3), 0.5, dtype=torch.half))
    assert halves.dtype == torch.half and halves[0, 0].tolist() == [0.5, 0.25, 0.125]


def test_when_to_read_is_trained():
    """Stock's extension fills a tensor of its own, through which no gradient passes."""
    chosen = torch.tensor(np.random.default_rng(2).random((1, 3, 4)), requires_grad=True)
    weight = torch.tensor(np.random.default_rng(3).random((1, 3, 4)))
    (expected_alignment_from_p_choose(chosen) * weight).sum().backward()
    values, step = chosen.detach().numpy()[0], 1e-6
    for i, j in np.ndindex(3, 4):
        shift = np.zeros((3, 4))
        shift[i, j] = step
        difference = aligned(values + shift) - aligned(values - shift)
        expected = (difference * weight.numpy()[0]).sum() / (2 * step)
        assert float(chosen.grad[0, i, j]) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_training_reaches_every_parameter(build, kind):
    model = build(kind).train()
    source, target = sentences(7, 5), sentences(6, 6)
    output, extra = model(source, torch.tensor([7, 5]), target)
    output.square().sum().backward()
    unused = [name for name, values in model.named_parameters() if values.grad is None]
    # the decisions of wait-k are fixed; its queries and keys are those of the soft attention
    assert all("_proj_soft" in name and kind.startswith("waitk") for name in unused)
    for layer in extra.attn_list:
        assert layer["beta"][1, :, :, 5:].eq(0).all()  # padding


def test_a_fixed_ratio_acts_in_the_training(build):
    model = build("infinite_lookback_fixed_pre_decision")
    _, extra = model(sentences(7), torch.tensor([7]), sentences(6))
    chosen = extra.attn_list[0]["p_choose"][0].gt(0).any(dim=1)  # of a head, of any word
    assert chosen.tolist() == [[False, False, True, False, False, True, True]] * 2


@pytest.mark.parametrize("kind", ["waitk", "waitk_fixed_pre_decision"])
@pytest.mark.parametrize("lagging", [1, 2])
def test_translation_reads_as_training_does(build, kind, lagging):
    """Wait-k decides alike in both; word by word, the outputs are those of the whole sentence."""
    model = build(kind, waitk_lagging=lagging)
    source, target = sentences(7), sentences(6)
    with torch.no_grad():
        encoded = model.encoder(source, torch.tensor([7]))
        whole, extra = model.decoder(target, encoder_out=encoded)
        state = {}
        for length in range(1, 7):
            step, more = model.decoder(target[:, :length], encoded, incremental_state=state)
            torch.testing.assert_close(step[:, -1], whole[:, length - 1])
            attention = extra.attn_list[-1]["beta"].mean(dim=1)[:, length - 1 : length]
            torch.testing.assert_close(more["attn"][0], attention)


@pytest.mark.parametrize("kind", ["hard_aligned", "infinite_lookback"])
def test_heads_at_the_first_position_attend_to_it(build, kind):
    """In stock they attend to nothing, or the shapes do not fit."""
    model = build(kind, energy_bias=True, energy_bias_init=20.0)  # never reads on
    with torch.no_grad():
        encoded = model.encoder(sentences(7), torch.tensor([7]))
        _, extra = model.decoder(sentences(6)[:, :1], encoded, incremental_state={})
    assert extra["attn"][0].tolist() == [[[1, 0, 0, 0, 0, 0, 0]]]


def test_programs_that_read_word_by_word_keep_their_notes(build):
    model = build("waitk", waitk_lagging=3)
    state = {"online": {"only": torch.tensor([True])}, "steps": {"src": 2, "tgt": 1}}
    with torch.no_grad():
        encoded = model.encoder(sentences(2), torch.tensor([2]))
        _, extra = model.decoder(torch.tensor([[2]]), encoded, incremental_state=state)
    assert extra.action == 0  # read on
    assert state["steps"] == {"src": 2, "tgt": 1}


def test_what_such_models_do_not_take_is_named(build):
    with pytest.raises(OptionError, match=r"needs --simul-type; allowed: chunkwise, hard_alig"):
        build(None)
    with pytest.raises(OptionError, match="allowed: --left-pad-source False"):
        build("waitk", left_pad_source=True)
    model = build("waitk")
    encoded = model.encoder(sentences(7, 7), torch.tensor([7, 7]))
    with pytest.raises(OptionError, match="allowed: --batch-size 1 --beam 1"):
        model.decoder(sentences(6, 6), encoded, incremental_state={})


def test_chunks_have_options(models):
    from fairseq.registry import REGISTRIES

    parser = ArgumentParser()
    REGISTRIES["simul_type"]["registry"]["chunkwise"].add_args(parser)
    args = parser.parse_args(["--mocha-chunk-size", "4"])
    assert (args.mocha_chunk_size, args.noise_var) == (4, 1.0)


def test_large_models_have_their_sizes(models):
    from fairseq.models import ARCH_CONFIG_REGISTRY

    args = Namespace()
    ARCH_CONFIG_REGISTRY["transformer_monotonic_vaswani_wmt_en_fr_big"](args)
    assert (args.encoder_embed_dim, args.dropout) == (1024, 0.1)


def test_encoders_that_stream_speech_name_what_they_lack(models):
    from fairseq.models import ARCH_MODEL_REGISTRY

    model = ARCH_MODEL_REGISTRY["convtransformer_augmented_memory"]
    with pytest.raises(ModuleNotFoundError, match="encoders that stream speech need"):
        model.build_encoder(Namespace())


def test_copies_of_earlier_versions_stay_as_they_are():
    """A --user-dir may be one: its files have the same names, and other functions."""
    for patch in (
        simultaneous.alignments_have_gradients,
        simultaneous.decisions_are_those_of_the_attention,
        simultaneous.chunks_have_options,
        simultaneous.monotonic_models_translate_sentences,
    ):
        copy = ModuleType("copy")
        vars(copy).update({name: type(name, (), {}) for name in OLDER})
        patch(copy)
        assert vars(copy).keys() == {*vars(ModuleType("copy")), *OLDER}
        assert all(vars(vars(copy)[name]).keys() == vars(type("", (), {})).keys() for name in OLDER)
