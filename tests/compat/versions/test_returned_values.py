"""Decoders and layers for fairseq 0.9, and encoders of RoBERTa for 0.9 and 0.10."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import FairseqDecoder
from fairseq.models.roberta import RobertaEncoder, RobertaModel
from fairseq.models.transformer import TransformerDecoder, base_architecture
from fairseq.modules import TransformerDecoderLayer, TransformerSentenceEncoder

WIDTH = 8


def options(**changed):
    args = Namespace(decoder_layers=2, decoder_embed_dim=WIDTH, encoder_embed_dim=WIDTH)
    vars(args).update(decoder_attention_heads=2, dropout=0.0, **changed)
    base_architecture(args)
    args.max_target_positions = args.max_source_positions = 20
    return args


class OlderDecoder(TransformerDecoder):
    def features_of_09(self, x, encoder_out):
        attention = None
        for layer in self.layers:
            x, attention = layer(x, encoder_out)
        return x, attention


class OlderLayer(TransformerDecoderLayer):
    def forward(self, x, *args, **options):
        x, attention, _ = super().forward(x, *args, **options)
        return x + 1, attention


class DecoderWithOlderLayers(TransformerDecoder):
    def build_decoder_layer(self, args, no_encoder_attn=False):
        return OlderLayer(args, no_encoder_attn)


def decoder(kind, **changed):
    torch.manual_seed(1)
    return kind(options(**changed), range(9), torch.nn.Embedding(9, WIDTH, padding_idx=1)).eval()


class TestLayers:
    def test_two_names(self):
        stack = decoder(OlderDecoder)
        x, memory = torch.randn(3, 2, WIDTH), torch.randn(4, 2, WIDTH)
        features, attention = stack.features_of_09(x, memory)
        for layer in stack.layers:
            x, expected, state = layer(x, memory)
            assert state is None
        torch.testing.assert_close(features, x)
        torch.testing.assert_close(attention, expected)

    def test_other_ways_of_reading(self):
        layer = decoder(OlderDecoder).layers[0]
        x, memory = torch.randn(3, 2, WIDTH), torch.randn(4, 2, WIDTH)
        first, *others = layer(x, memory)
        assert len(others) == 2 and len(list(layer(x, memory))) == 3
        assert len(layer(x, memory)) == 3 and layer(x, memory)[2] is None
        torch.testing.assert_close(layer(x, memory)[0], first)
        with pytest.raises(ValueError, match="expected 4, got 3"):
            _a, _b, _c, _d = layer(x, memory)

    @pytest.mark.parametrize("checkpoints", [False, True])
    def test_layers_that_return_two(self, checkpoints):
        older = decoder(DecoderWithOlderLayers, checkpoint_activations=checkpoints)
        words = torch.tensor([[2, 4, 5]])
        encoder_out = {"encoder_out": [torch.randn(4, 1, WIDTH)], "encoder_padding_mask": []}
        features, extra = older.extract_features(words, encoder_out)
        assert features.shape == (1, 3, WIDTH) and extra["attn"][0].shape == (1, 3, 4)
        # what a plugin's own layer returns is left as it is
        assert len(older.layers[0](torch.randn(3, 1, WIDTH), torch.randn(4, 1, WIDTH))) == 2

    def test_torchscript(self):
        scripted = torch.jit.script(decoder(TransformerDecoder))
        assert scripted(torch.tensor([[2, 4]]))[0].shape == (1, 2, 9)


SMALL = {"padding_idx": 1, "vocab_size": 9, "num_encoder_layers": 1, "embedding_dim": WIDTH}
SMALL.update(ffn_embedding_dim=WIDTH, num_attention_heads=2, max_seq_len=20, num_segments=0)
WORDS = torch.tensor([[0, 4, 5, 6, 2], [0, 7, 2, 1, 1]])


class OwnEncoder(TransformerSentenceEncoder):
    """Takes what fairseq 0.10 gave it."""

    def forward(self, tokens, segment_labels=None, last_state_only=False, positions=None):
        return super().forward(tokens, last_state_only=last_state_only)


class RobertaOf010(RobertaEncoder):
    def build_encoder(self, args, dictionary, embed_tokens):
        return OwnEncoder(**SMALL)


class RobertaOf09(FairseqDecoder):
    def __init__(self):
        super().__init__(None)
        self.sentence_encoder = TransformerSentenceEncoder(**SMALL)

    def extract_features(self, words):
        states, _ = self.sentence_encoder(words, last_state_only=True)
        return states[-1]


class DecoderOf010(RobertaOf09):
    def extract_features(self, words):
        states, _ = self.sentence_encoder(words, last_state_only=True)
        return states[-1].transpose(0, 1)


class Words:
    def pad(self):
        return 1

    def __len__(self):
        return 9


class TestSentenceEncoders:
    @pytest.mark.parametrize("encoder", [RobertaOf010, RobertaEncoder])
    def test_their_checkpoints(self, encoder):
        args = Namespace(encoder_layers=1, encoder_embed_dim=WIDTH, encoder_attention_heads=2)
        vars(args).update(max_positions=20, layernorm_embedding=True)
        roberta = RobertaModel(args, encoder(args, Words()))
        stored = {name: value + 1 for name, value in roberta.state_dict().items()}
        # fairseq 0.10 wrote every RoBERTa so
        older = {
            name.replace("layernorm_embedding", "emb_layer_norm"): value
            for name, value in stored.items()
        }
        roberta.load_state_dict(older)
        for name, value in roberta.state_dict().items():
            torch.testing.assert_close(value, stored[name])

    @pytest.mark.parametrize("has_all", [False, True])
    def test_in_an_encoder(self, has_all):
        args = Namespace(encoder_layers=1, encoder_embed_dim=WIDTH, encoder_attention_heads=2)
        vars(args).update(max_positions=20, quant_noise_pq=0)
        roberta = RobertaOf010(args, Words()).eval()
        features, extra = roberta.extract_features(WORDS, return_all_hiddens=has_all)
        states, _ = roberta.sentence_encoder(WORDS)
        torch.testing.assert_close(features, states[-1].transpose(0, 1))
        assert len(extra["inner_states"] or []) == 2 * has_all

    @pytest.mark.parametrize("kind", [RobertaOf09, DecoderOf010])
    def test_in_a_decoder(self, kind):
        model = kind().eval()
        features = model.extract_features(WORDS)
        states, _ = model.sentence_encoder(WORDS, last_state_only=True)
        assert features.shape == (2, 5, WIDTH)
        torch.testing.assert_close(features, states[-1].transpose(0, 1))
