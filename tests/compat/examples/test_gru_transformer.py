"""byte_level_bpe: the GRU reads words only (fairseq_ext/compat/examples/gru_transformer.py)."""

from types import SimpleNamespace

import pytest
import torch
from common.words import numbered_words

from fairseq_ext.compat.examples.gru_transformer import read_words

PAD, EOS = 1, 2
SENTENCES = ([7, 5, 6, EOS], [8, EOS], [EOS])


@pytest.fixture
def gru():
    torch.manual_seed(4)
    return torch.nn.GRU(6, 3, bidirectional=True)


@pytest.mark.parametrize("is_left", [True, False])
def test_states_are_those_of_each_sentence(gru, is_left):
    x = torch.randn(3, 4, 6)  # (B, S, D)
    lengths = [len(words) for words in SENTENCES]
    spans = [slice(4 - n, 4) if is_left else slice(0, n) for n in lengths]
    is_word = torch.zeros(3, 4, dtype=torch.bool)
    for row, span in enumerate(spans):
        is_word[row, span] = True
    states = read_words(gru, x, is_word)
    for row, span in enumerate(spans):
        alone, _ = gru(x[row, span].unsqueeze(1))
        torch.testing.assert_close(states[row, span], alone.squeeze(1))
    assert not states[~is_word].any()


def test_encoding_does_not_depend_on_the_batch(example):
    from fairseq.data.data_utils import collate_tokens

    module = example("byte_level_bpe/gru_transformer", "")
    words = numbered_words(12)
    args = SimpleNamespace(max_source_positions=16, max_target_positions=16)
    for side in ("encoder", "decoder"):
        for name, size in (("layers", 1), ("embed_dim", 8), ("ffn_embed_dim", 8)):
            setattr(args, f"{side}_{name}", size)
        setattr(args, f"{side}_attention_heads", 2)
    module.gru_transformer_base_architecture(args)
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    model = module.GRUTransformerModel.build_model(args, task).eval()
    rows = [torch.tensor(words) for words in SENTENCES]
    batch = collate_tokens(rows, PAD, left_pad=True)
    together = model.encoder(batch, batch.ne(PAD).sum(1))["encoder_out"][0]  # (S, B, D)
    for row, sentence in enumerate(rows):
        alone = model.encoder(sentence.unsqueeze(0), torch.tensor([len(sentence)]))
        expected = alone["encoder_out"][0][:, 0]
        torch.testing.assert_close(together[-len(sentence) :, row], expected)
