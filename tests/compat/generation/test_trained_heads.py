"""transformer_align: a search gives the attention of the heads that were trained to align."""

from types import SimpleNamespace

import pytest
import torch
from common.words import numbered_words
from fairseq.models.transformer_align import TransformerAlignModel, transformer_align
from fairseq.sequence_generator import SequenceGeneratorWithAlignment

LAYERS, HEADS = 2, 2


def aligning_model(layer, heads):
    args = SimpleNamespace(alignment_layer=layer, alignment_heads=heads, dropout=0.0)
    for side in ("encoder", "decoder"):
        for name, size in (("layers", LAYERS), ("embed_dim", 8), ("ffn_embed_dim", 8)):
            setattr(args, f"{side}_{name}", size)
        setattr(args, f"{side}_attention_heads", HEADS)
    args.max_source_positions = args.max_target_positions = 20
    transformer_align(args)
    words = numbered_words(12)
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    torch.manual_seed(3)
    model = TransformerAlignModel.build_model(args, task).eval()
    for part in model.decoder.parameters():
        torch.nn.init.normal_(part)  # heads that differ
    return model, words


@pytest.mark.parametrize("layer, heads", [(0, 1), (1, 1), (0, 2), (4, 1), (0, 0)])
def test_the_search_aligns_by_the_trained_heads(layer, heads):
    model, words = aligning_model(layer, heads)
    source = torch.tensor([[4, 5, 6, 7, 2]])
    inputs = {"src_tokens": source, "src_lengths": torch.tensor([5])}
    search = SequenceGeneratorWithAlignment(
        [model], words, print_alignment="soft", beam_size=1, max_len_b=6
    )
    answer = search.generate([model], {"net_input": inputs})[0][0]
    before = torch.cat([torch.tensor([2]), answer["tokens"][:-1]])[None]
    exists = layer < LAYERS and heads > 0
    # as the criterion reads it
    options = {"alignment_layer": layer, "alignment_heads": heads} if exists else {}
    encoded = model.encoder(source, inputs["src_lengths"])
    expected = model.decoder(before, encoded, **options)[1]["attn"][0][0].t()  # (S, T)
    torch.testing.assert_close(answer["attention"], expected)
    if exists:
        trained = model(**inputs, prev_output_tokens=before)[1]["attn"][0][0]
        torch.testing.assert_close(trained, expected.t())
