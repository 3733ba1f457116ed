"""The tagged transformer is fairseq's transformer whose encoder reads a tag as the end symbol."""

import copy

import numpy as np
import pytest
import torch
from common.inprocess import configuration, generate, hypotheses, parameters, train
from fairseq import options, tasks
from fairseq_cli import preprocess
from torch import nn

from fairseq_ext.dual.tagged.model import TaggedTransformerModel

SIZES = ["--share-all-embeddings", "--dropout", 0]
for _side in ("encoder", "decoder"):
    SIZES += [f"--{_side}-embed-dim", 16, f"--{_side}-ffn-embed-dim", 16]
    SIZES += [f"--{_side}-layers", 1, f"--{_side}-attention-heads", 2]
TAGGED = ("--task", "dual_translation", "--arch", "tagged_transformer", *SIZES)
XX_YY = ("-s", "xx", "-t", "yy")
ADAM = ("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 400, "--no-epoch-checkpoints")
ADAM += ("--criterion", "cross_entropy")
END = 2
SOURCE = torch.tensor([[1, 1, 8, END], [5, 6, 7, END]])
TARGET = torch.tensor([[END, 9, 4, 6], [END, 5, 1, 1]])


def build(data, *words):
    """(task, model) of a training with these options."""
    cfg = configuration(options.get_training_parser(), [data, *words])
    torch.manual_seed(4)
    task = tasks.setup_task(cfg.task)
    return task, task.build_model(cfg.model)


def stock_with_tag(data, model, source, target):
    """fairseq's transformer of a direction, with an embedding of its own in the encoder."""
    words = ["--task", "translation", "-s", source, "-t", target, "--arch", "transformer", *SIZES]
    words.remove("--share-all-embeddings")
    _, stock = build(data, *words, "--share-decoder-input-output-embed")
    state = copy.deepcopy(model.transformer.state_dict())
    embedding = state["encoder.embed_tokens.weight"].clone()
    embedding[END] = model.tags[target].detach()
    stock.load_state_dict({**state, "encoder.embed_tokens.weight": embedding}, strict=True)
    return stock


@pytest.mark.parametrize("pair", ["xx-yy", "yy-xx"])
def test_each_direction_is_a_stock_transformer_with_another_end_symbol(toy_corpus, pair):
    _, model = build(toy_corpus.two, *TAGGED, *XX_YY)
    stock = stock_with_tag(toy_corpus.two, model, *pair.split("-"))
    model.eval(), stock.eval()
    inputs = {"src_tokens": SOURCE, "src_lengths": torch.tensor([2, 4])}
    inputs["prev_output_tokens"] = TARGET
    expected = stock(**inputs)[0]
    assert torch.equal(model(**inputs, pair=pair)[0], expected)
    assert torch.equal(model.direction(pair)(**inputs)[0], expected)
    # the first pair is the default
    assert torch.equal(model(**inputs)[0], expected) == (pair == "xx-yy")


def test_tags_begin_as_fairseq_s_words_do():
    transformer = nn.Module()
    transformer.encoder = nn.Module()
    transformer.encoder.embed_tokens = nn.Embedding(4, 4096)
    tags = TaggedTransformerModel(transformer, {}, ["xx-yy", "yy-xx"], (9, 9)).tags
    assert sorted(tags) == ["xx", "yy"] and not torch.equal(tags["xx"], tags["yy"])
    for tag in tags.values():
        assert tag.std().item() == pytest.approx(4096**-0.5, rel=0.1)


def test_one_layer_of_numpy_reads_the_tag_last():
    """The encoder's input: vectors of words, scaled, and the tag at the end, before positions."""
    from fairseq.data import Dictionary
    from fairseq.models import FairseqEncoder

    from fairseq_ext.dual.tagged.model import TaggedEncoder

    class Recording(FairseqEncoder):
        def __init__(self):
            super().__init__(Dictionary())
            self.embed_tokens = torch.nn.Embedding(9, 3)

        def forward(self, src_tokens, src_lengths, token_embeddings):
            return token_embeddings

    encoder, tag = Recording(), torch.nn.Parameter(torch.tensor([7.0, 8.0, 9.0]))
    words = encoder.embed_tokens.weight.detach().numpy()
    vectors = TaggedEncoder(encoder, tag)(SOURCE, None).detach().numpy()
    for row, tokens in zip(vectors, SOURCE.tolist()):
        expected = [tag.detach().numpy() if token == END else words[token] for token in tokens]
        np.testing.assert_array_equal(row, np.stack(expected))


def test_a_pair_moves_the_parameters_that_it_names(toy_corpus):
    _, model = build(toy_corpus.three, *TAGGED, "--lang-pairs", "xx-yy,xx-zz")
    for pair in ("xx-yy", "yy-xx", "zz-xx"):
        model.zero_grad()
        model(SOURCE, torch.tensor([2, 4]), TARGET, pair=pair)[0].pow(2).sum().backward()
        moved = {name for name, value in model.named_parameters() if value.grad is not None}
        assert moved == set(model.pair_parameters(pair))
        assert {name for name in moved if name.startswith("tags")} == {f"tags.{pair[3:]}"}


def test_directions_that_no_pair_trained(toy_corpus):
    _, model = build(toy_corpus.two, *TAGGED, *XX_YY, "--one-way")
    assert set(model.tags) == {"yy"}
    with pytest.raises(ValueError, match="'yy-xx': the model was trained for xx-yy"):
        model.direction("yy-xx")
    # both roles of all three languages are trained, if not together
    _, model = build(toy_corpus.three, *TAGGED, "--lang-pairs", "xx-yy,xx-zz")
    model.direction("yy-zz")


def test_options_that_do_not_fit(toy_corpus, tmp_path):
    with pytest.raises(ValueError, match=r"--adaptive-softmax-cutoff \S*3\S*: allowed"):
        build(toy_corpus.two, *TAGGED, *XX_YY, "--adaptive-softmax-cutoff", 3)
    words = ["-s", "xx", "-t", "yy", "--trainpref", toy_corpus.text / "train", "--workers", 1]
    words += ["--destdir", tmp_path / "apart"]
    preprocess.main(options.get_preprocessing_parser().parse_args([str(word) for word in words]))
    with pytest.raises(ValueError, match="--arch tagged_transformer: .* --joined-dictionary"):
        build(tmp_path / "apart", *TAGGED, *XX_YY)


def test_training_resumes_and_translates_both_ways(toy_corpus, tmp_path):
    data, folder, again = toy_corpus.two, tmp_path / "run", tmp_path / "again"
    words = [data, *TAGGED, *XX_YY, *ADAM, "--disable-validation", "--max-update", 40]
    train(*words, "--save-dir", folder, "--save-interval-updates", 20)
    train(*words, "--save-dir", again, "--restore-file", next(folder.glob("checkpoint_*_20.pt")))
    expected, resumed = (parameters(run / "checkpoint_last.pt") for run in (folder, again))
    # fairseq stores an empty tensor for the device of its sinusoidal positions
    trained = [name for name in expected if not name.endswith("_float_tensor")]
    assert all(torch.equal(resumed[name], expected[name]) for name in trained)
    for pair in ("xx-yy", "yy-xx"):
        source, target = pair.split("-")
        search = ["--task", "dual_translation", "-s", source, "-t", target, "--beam", 3]
        search += ["--path", folder / "checkpoint_last.pt", "--max-len-b", 9]
        plain = hypotheses(generate(data, *search))
        ranked = hypotheses(generate(data, *search, "--dual-alpha", 0.5))
        assert len(plain) == len(ranked) > 0
