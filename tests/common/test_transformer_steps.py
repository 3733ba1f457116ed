"""The steps of transformer_steps.py against fairseq's own decoder, and when a search takes them."""

import functools
from argparse import Namespace

import pytest
import torch
from common.test_beam_search import same
from common.words import numbered_words
from fairseq.models.transformer import TransformerDecoder, TransformerModel, base_architecture
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import nn

from fairseq_ext.common import decoder_steps, products, search_record, search_rows
from fairseq_ext.common.beam_search import BeamSearchGenerator
from fairseq_ext.common.products import WeightCache
from fairseq_ext.common.stock_transformer_steps import transformer_steps

WORDS, ROWS, STEPS, POSITIONS = numbered_words(60), 4, 5, 6
SIZES = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in {
        "embed_dim": 16,
        "ffn_embed_dim": 24,
        "attention_heads": 2,
        "layers": 2,
    }.items()
}
# options of a stock decoder that its steps know
SHAPES = {
    "norms behind": {},
    "norms in front": {"decoder_normalize_before": True},
    "no last norm": {"decoder_normalize_before": True, "no_decoder_final_norm": True},
    "learnt positions": {"decoder_learned_pos": True},
    "no positions": {"no_token_positional_embeddings": True},
    "tied": {"share_all_embeddings": True, "no_scale_embedding": True},
    "an encoder of another width": {"encoder_embed_dim": 20},
}
# and such that they do not know
OTHERS = {
    "another activation": {"activation_fn": "gelu"},
    "norm of the embeddings": {"layernorm_embedding": True},
    "width of the output": {"decoder_output_dim": 12},
    "adaptive softmax": {"adaptive_softmax_cutoff": "20,40"},
    "scaled heads": {"scale_heads": True},
    "scaled residuals": {"scale_resids": True},
    "scaled attention": {"scale_attn": True},
    "scaled feed-forward": {"scale_fc": True},
    "dropped layers": {"decoder_layerdrop": 0.1},
    "no layers": {"decoder_layers": 0},
}


@pytest.fixture(autouse=True)
def words_in_chunks(monkeypatch):
    monkeypatch.setattr(search_record, "SORTED_WHOLE", 0)


def stock(**options):
    """A Transformer whose parameters are all random, those of its norms and biases too."""
    args = Namespace(**{**SIZES, **options})
    base_architecture(args)
    torch.manual_seed(0)
    task = Namespace(source_dictionary=WORDS, target_dictionary=WORDS)
    model = TransformerModel.build_model(args, task).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def sample(sentences=1, positions=POSITIONS):
    torch.manual_seed(1)
    tokens = torch.randint(4, len(WORDS), (sentences, positions))
    tokens[:, -1] = WORDS.eos()
    net_input = {"src_tokens": tokens, "src_lengths": torch.full((sentences,), positions)}
    return {"net_input": net_input}


@pytest.fixture
def taken(monkeypatch):
    """A list with an entry for each search: whether it took the steps."""
    taken, choose = [], decoder_steps.decoder_steps

    def watch(*arguments):
        steps = choose(*arguments)
        taken.append(steps is not None)
        return steps

    monkeypatch.setattr(search_rows, "decoder_steps", watch)
    return taken


def differences(steps, decoder, encoder_out, reorder=True):
    """The largest differences of logits and attention from those of whole hypotheses.

    Words are random, and so are the hypotheses that go on.
    """
    torch.manual_seed(2)
    logits_off = attention_off = 0.0
    tokens = torch.full((ROWS, 1), WORDS.eos())
    for _ in range(STEPS):
        logits, attention = steps(tokens[:, -1])
        expected, more = decoder(tokens, encoder_out=encoder_out)
        logits_off = max(logits_off, float((logits - expected[:, -1]).abs().max()))
        attention_off = max(attention_off, float((attention - more["attn"][0][:, -1]).abs().max()))
        order = torch.randint(ROWS, (ROWS,))
        if reorder:
            steps.reorder(order)
        words = torch.randint(4, len(WORDS), (ROWS, 1))
        tokens = torch.cat([tokens[order], words], dim=1)
    return logits_off, attention_off


def encoded(model):
    once = model.encoder(**sample()["net_input"])
    order = torch.zeros(ROWS, dtype=torch.long)
    return once, model.encoder.reorder_encoder_out(once, order)


@pytest.mark.parametrize("name", SHAPES)
@torch.no_grad()
def test_steps_are_those_of_fairseqs_decoder(name):
    model = stock(**SHAPES[name])
    once, of_rows = encoded(model)
    with WeightCache().active():
        steps = transformer_steps(model.decoder, once, ROWS, STEPS)
    assert max(differences(steps, model.decoder, of_rows)) < 1e-5


@torch.no_grad()
def test_rows_that_keep_the_past_of_others_are_noticed():
    model = stock()
    once, of_rows = encoded(model)
    steps = transformer_steps(model.decoder, once, ROWS, STEPS)
    assert differences(steps, model.decoder, of_rows, reorder=False)[0] > 1e-2


SEARCHES = {
    "plain": {},
    "greedy": {"beam_size": 1},
    "wide": {"beam_size": 9, "min_len": 4},
    "options": {"len_penalty": 0.3, "unk_penalty": 2.0, "temperature": 1.7, "eos": 5},
}


def both(models, batch, **options):
    """The hypotheses of the suite's search and of fairseq's."""
    options = {"beam_size": 4, "max_len_b": 12, **options}
    return [
        kind(models, WORDS, **options).generate(None, batch)
        for kind in (BeamSearchGenerator, SequenceGenerator)
    ]


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("shape", ["norms behind", "norms in front"])
def test_searches_of_a_sentence_are_those_of_fairseq(taken, name, shape):
    same(*both([stock(**SHAPES[shape])], sample(), **SEARCHES[name]))
    assert taken == [True]


class OtherDecoder(TransformerDecoder):
    def forward(self, *arguments, **options):
        logits, more = super().forward(*arguments, **options)
        return logits.flip(2), more


def with_hook():
    model = stock()
    model.decoder.layers[0].register_forward_hook(lambda module, inputs, output: output)
    return model


def with_other_decoder():
    model = stock()
    model.decoder.__class__ = OtherDecoder
    return model


def with_attention_to_zero():
    model = stock()
    model.decoder.layers[0].self_attn.add_zero_attn = True
    return model


def with_other_forward():
    model = stock()
    stock_forward = model.decoder.forward

    @functools.wraps(stock_forward)
    def forward(*arguments, **options):
        logits, more = stock_forward(*arguments, **options)
        return logits.flip(2), more

    model.decoder.forward = forward
    return model


MODELS = {
    **{name: lambda options=options: stock(**options) for name, options in OTHERS.items()},
    "a hook": with_hook,
    "another class": with_other_decoder,
    "another forward": with_other_forward,
    "attention to zero": with_attention_to_zero,
}


@pytest.mark.parametrize("name", MODELS)
def test_other_decoders_take_their_own_steps(taken, name):
    same(*both([MODELS[name]()], sample()))
    assert taken == [False]


def padded():
    batch = sample()
    batch["net_input"]["src_tokens"][0, 0] = WORDS.pad()
    return batch


@pytest.mark.parametrize(
    "batch, options",
    [
        (padded(), {}),
        (sample(positions=decoder_steps.LONGEST + 1), {"max_len_b": 3}),
        (sample(), {"beam_size": decoder_steps.MOST_ROWS + 1}),
    ],
    ids=["padding", "long", "wide"],
)
def test_other_searches_take_the_models_steps(taken, batch, options):
    same(*both([stock()], batch, **options))
    assert taken == [False]


def test_ensembles_and_several_sentences_are_not_asked(taken):
    same(*both([stock(), stock(decoder_normalize_before=True)], sample()))
    same(*both([stock()], sample(sentences=2)))
    assert taken == []


def test_an_ensemble_whose_step_a_program_replaces_is_not_asked(taken, monkeypatch):
    decode = EnsembleModel.forward_decoder

    @functools.wraps(decode)
    def forward_decoder(self, *arguments, **options):
        log_p, attention = decode(self, *arguments, **options)
        return log_p.flip(1), attention

    monkeypatch.setattr(EnsembleModel, "forward_decoder", forward_decoder)
    same(*both([stock()], sample()))
    assert taken == []


def test_sixteen_bits_keep_the_order_of_their_sums(taken):
    BeamSearchGenerator([stock().bfloat16()], WORDS).generate(None, sample())
    assert taken == [False]


def test_retained_dropout_drops(taken):
    model = stock(dropout=0.5)
    model.make_generation_fast_(retain_dropout=True)
    BeamSearchGenerator([model], WORDS).generate(None, sample())
    assert taken == [False]


def change(model):
    """Give the output layer other values, as an optimiser does, which leaves no trace."""
    weight = model.decoder.output_projection.weight
    weight.data.copy_(weight.data.flip(0))


def reload(model):
    state = {name: value.flip(0) for name, value in model.state_dict().items() if value.dim() == 2}
    model.load_state_dict(state, strict=False)


def replace(model):
    layer = model.decoder.output_projection
    layer.weight = nn.Parameter(layer.weight.flip(0))


@pytest.mark.parametrize(
    "is_prepared, changing",
    [(False, change), (False, reload), (False, replace), (True, reload), (True, replace)],
)
def test_searches_use_the_parameters_of_now(monkeypatch, is_prepared, changing):
    monkeypatch.setattr("fairseq_ext.common.products.WORTH_ARRANGING", 0)
    model = stock(encoder_layers=1)
    if is_prepared:
        model.make_generation_fast_()
    generator = BeamSearchGenerator([model], WORDS, beam_size=4, max_len_b=12)
    generator.generate(None, sample())
    changing(model)
    same(generator.generate(None, sample()), both([model], sample())[1])


def test_models_made_in_inference_mode_are_searched(monkeypatch):
    """Their parameters count no writes, so that a search cannot tell that they changed."""
    monkeypatch.setattr("fairseq_ext.common.products.WORTH_ARRANGING", 0)
    with torch.inference_mode():
        model = stock(encoder_layers=1)
        model.make_generation_fast_()
        generator = BeamSearchGenerator([model], WORDS, beam_size=4, max_len_b=12)
        generator.generate(None, sample())
        change(model)
        same(generator.generate(None, sample()), both([model], sample())[1])


@pytest.mark.skipif(products._arranged is None, reason="torch before 2.0 arranges no matrices")
@pytest.mark.parametrize("is_prepared", [True, False])
def test_matrices_of_prepared_models_are_arranged_once(monkeypatch, is_prepared):
    monkeypatch.setattr("fairseq_ext.common.products.WORTH_ARRANGING", 0)
    arranged = []

    def watch(self, weight, rows, arrange=WeightCache.arrange_now):
        arranged.append(self.arranged.get(weight) is None)
        return arrange(self, weight, rows)

    monkeypatch.setattr(WeightCache, "arrange_now", watch)
    model = stock()
    if is_prepared:
        model.make_generation_fast_()
    generator = BeamSearchGenerator([model], WORDS, beam_size=4, max_len_b=12)
    generator.generate(None, sample())
    assert any(arranged)
    arranged.clear()
    generator.generate(None, sample())
    assert any(arranged) != is_prepared
