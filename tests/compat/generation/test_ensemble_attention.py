"""The attention of ensembles in which some models have none."""

from argparse import Namespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.models.transformer_align import TransformerAlignModel
from fairseq.sequence_generator import (
    EnsembleModelWithAlignment,
    SequenceGenerator,
    SequenceGeneratorWithAlignment,
)
from fairseq.sequence_scorer import SequenceScorer

from fairseq_ext.common.beam_search import BeamSearchGenerator, BeamSearchWithAlignment

SOURCES = torch.tensor([[5, 6, 7, 2], [1, 9, 10, 2]])
LENGTHS = torch.tensor([4, 3])
SAMPLE = {"net_input": {"src_tokens": SOURCES, "src_lengths": LENGTHS}}
GENERATORS = [
    SequenceGenerator,
    SequenceGeneratorWithAlignment,
    BeamSearchGenerator,
    BeamSearchWithAlignment,
]


def built(seed, kind=TransformerModel):
    words = dictionary_with(*(f"word{number}" for number in range(12)))
    args = Namespace(encoder_layers=1, decoder_layers=1, max_source_positions=20)
    args.max_target_positions, args.alignment_heads, args.alignment_layer = 20, 1, 0
    args.full_context_alignment = True
    for side in ("encoder", "decoder"):
        for name, size in (("embed_dim", 8), ("ffn_embed_dim", 8), ("attention_heads", 2)):
            setattr(args, f"{side}_{name}", size)
    base_architecture(args)
    torch.manual_seed(seed)
    task = Namespace(source_dictionary=words, target_dictionary=words)
    return kind.build_model(args, task).eval()


def without_attention(seed):
    """A model whose decoder looks at the source and does not tell where."""
    model = built(seed)
    forward = model.decoder.forward

    def silent(*args, **options):
        scores, extra = forward(*args, **options)
        return scores, {**extra, "attn": [None]}

    model.decoder.forward = silent
    return model


def scored_sample():
    """The sources with references."""
    targets = torch.tensor([[5, 6, 2], [8, 2, 1]])
    previous = torch.tensor([[2, 5, 6], [2, 8, 1]])
    net_input = {**SAMPLE["net_input"], "prev_output_tokens": previous}
    return {"net_input": net_input, "target": targets}


def hypotheses(kind, models):
    generator = kind(models, models[0].decoder.dictionary, beam_size=3, max_len_b=6)
    return [entry for nbest in generator.generate(models, SAMPLE) for entry in nbest]


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("silent", [{0}, {1}, {0, 2}])
def test_weights_add_up_to_one(kind, silent):
    models = [without_attention(seed) if seed in silent else built(seed) for seed in range(3)]
    everything = hypotheses(kind, [built(seed) for seed in range(3)])
    for entry, other in zip(hypotheses(kind, models), everything):
        weights = entry["attention"]  # (S, T)
        torch.testing.assert_close(weights.sum(0), torch.ones(weights.size(1)))
        assert entry["tokens"].tolist() == other["tokens"].tolist()
        torch.testing.assert_close(entry["score"], other["score"])


def test_no_model_has_attention():
    models = [without_attention(0), without_attention(1)]
    for entry in hypotheses(BeamSearchGenerator, models):
        assert entry["attention"].numel() == 0


@pytest.mark.parametrize("kind", [SequenceGeneratorWithAlignment, BeamSearchWithAlignment])
@pytest.mark.parametrize("print_alignment", ["hard", "soft"])
def test_alignments_need_attention(kind, print_alignment):
    models = [without_attention(0), without_attention(1)]
    words = models[0].decoder.dictionary
    generator = kind(models, words, beam_size=3, max_len_b=6, print_alignment=print_alignment)
    with pytest.raises(ValueError, match="--print-alignment and --replace-unk: the model returns"):
        generator.generate(models, SAMPLE)
    scorer = SequenceScorer(words, compute_alignment=print_alignment)
    with pytest.raises(ValueError, match="--print-alignment and --replace-unk: the model returns"):
        scorer.generate(models, scored_sample())
    scorer.compute_alignment = False
    assert scorer.generate(models, scored_sample())[0][0]["attention"] is None


@pytest.mark.parametrize("silent_first", [False, True])
def test_whole_targets_are_aligned(silent_first):
    """Of transformer_align with --full-context-alignment."""
    aligning = built(1, TransformerAlignModel)
    models = [without_attention(0), aligning] if silent_first else [aligning, without_attention(0)]
    previous = torch.tensor([[2, 5, 6], [2, 8, 1]])
    expected = aligning(SOURCES, LENGTHS, previous)[1]["attn"][0]
    weights = EnsembleModelWithAlignment(models).forward_align(SOURCES, LENGTHS, previous)
    torch.testing.assert_close(weights, expected)
    both = EnsembleModelWithAlignment([aligning, aligning])
    torch.testing.assert_close(both.forward_align(SOURCES, LENGTHS, previous), expected)


def test_a_compiled_search_leaves_the_other_as_it_is():
    models = [built(0), built(1)]
    words = models[0].decoder.dictionary
    generator = SequenceGenerator(models, words, beam_size=2, max_len_b=6)
    ensemble = generator.model
    compiled = torch.jit.script(generator)(SAMPLE)
    assert generator.model is ensemble
    for nbest, others in zip(compiled, generator.generate(models, SAMPLE)):
        torch.testing.assert_close(nbest[0]["attention"], others[0]["attention"])
