"""The alignments of a search, however many hypotheses a sentence has."""

import pytest
from compat.generation.test_ensemble_attention import SAMPLE, built
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer_align import TransformerAlignModel
from fairseq.sequence_generator import SequenceGeneratorWithAlignment


@pytest.mark.parametrize("kind", [TransformerModel, TransformerAlignModel])
def test_fewer_hypotheses_than_the_beam_are_aligned(kind, monkeypatch):
    """TransformerAlignModel sees the whole target, and is run again."""
    model = built(1, kind)
    words = model.decoder.dictionary
    generator = SequenceGeneratorWithAlignment([model], words, beam_size=3, max_len_b=4)
    whole = generator.generate(None, SAMPLE)
    search = generator._generate

    def search_with_fewer(sample, **options):
        first, second = search(sample, **options)
        return [first[:1], second[1:]]

    monkeypatch.setattr(generator, "_generate", search_with_fewer)
    fewer = generator.generate(None, SAMPLE)
    expected = [*whole[0][:1], *whole[1][1:]]
    for hypothesis, other in zip((entry for nbest in fewer for entry in nbest), expected):
        assert hypothesis["tokens"].tolist() == other["tokens"].tolist()
        assert list(hypothesis["alignment"]) == list(other["alignment"]) != []
