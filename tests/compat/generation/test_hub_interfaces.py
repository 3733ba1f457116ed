"""from_pretrained: the coders and options of the caller, and an answer for each input."""

from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from common.words import dictionary_with

TOO_LONG = "an1 an2 an3 an4 an5 an6 an7"
SIZES = {"layers": 1, "embed_dim": 8, "ffn_embed_dim": 8, "attention_heads": 2}
LAYERS = [
    word
    for side in ("encoder", "decoder")
    for name, size in SIZES.items()
    for word in (f"--{side}-{name.replace('_', '-')}", size)
]


@pytest.fixture(scope="module")
def pretrained(toy_corpus, tmp_path_factory):
    """Function (options) -> the interface of a model that was trained with --bpe characters."""
    from fairseq.models.transformer import TransformerModel

    folder = tmp_path_factory.mktemp("pretrained")
    inprocess.train(
        *(toy_corpus.two, "-s", "xx", "-t", "yy", "--arch", "transformer", *LAYERS),
        *("--max-update", 1, "--max-tokens", 800, "--criterion", "cross_entropy", "--seed", 3),
        *("--bpe", "characters", "--tokenizer", "space", "--max-source-positions", 6),
        *("--save-dir", folder, "--no-epoch-checkpoints", "--disable-validation"),
    )

    def pretrained(**options):
        names = (str(folder), "checkpoint_last.pt", str(toy_corpus.two))
        return TransformerModel.from_pretrained(*names, **options)

    return pretrained


@pytest.mark.parametrize(
    ("options", "coders"),
    [
        ({}, ("Characters", "SpaceTokenizer")),
        ({"bpe": "characters"}, ("Characters", "SpaceTokenizer")),
        ({"bpe": "bytes"}, ("Bytes", "SpaceTokenizer")),
        ({"bpe": None, "tokenizer": None}, ("NoneType", "NoneType")),
    ],
)
def test_coders_are_those_of_the_caller(options, coders, pretrained):
    interface = pretrained(**options)
    assert (type(interface.bpe).__name__, type(interface.tokenizer).__name__) == coders


def test_unknown_coders_are_refused(pretrained):
    with pytest.raises(ValueError, match="^bpe='byte' is not known; allowed: None, .*bytes"):
        pretrained(bpe="byte")


def test_defaults_of_a_model_leave_the_coder_of_the_checkpoint():
    """RoBERTa has bpe="gpt2" as default; a caller who names none gets that of the training."""
    from fairseq_ext.compat.generation.hub_interfaces import coders_by_name, noting_coders

    def from_pretrained(cls, name, bpe="gpt2", **options):
        return dict(coders_by_name.get())

    noted = noting_coders(from_pretrained)
    assert noted(None, "a") == {}
    assert noted(None, "a", "bytes") == {"bpe": "bytes"}
    assert noted(None, "a", tokenizer="moses") == {"tokenizer": "moses"}
    assert dict(coders_by_name.get()) == {}


def test_answers_stand_at_their_inputs(pretrained):
    interface = pretrained(bpe=None)
    lines = ["an1 av2 an3", TOO_LONG, "an4 av1 an2"]
    options = {"beam": 2, "max_len_b": 4}
    answers = interface.translate(lines, skip_invalid_size_inputs=True, **options)
    assert answers == [*interface.translate(lines[:1], **options), "",
                       *interface.translate(lines[2:], **options)]  # fmt: skip
    tokens = interface.encode(TOO_LONG)
    (answer,) = interface.generate(tokens, skip_invalid_size_inputs=True)
    assert answer["score"] == -torch.inf


def test_inputs_that_a_task_leaves_out_have_empty_answers(pretrained, monkeypatch):
    """In stock, the answers after such an input stand one place too early."""
    interface = pretrained(bpe=None)

    class Choosing(type(interface.task)):
        def filter_indices_by_size(self, indices, dataset, *options):
            return indices[dataset.src_sizes[indices] != 3]

    lines = ["an1 av2 an3", "an1 av2", "an4 av1 an2"]
    options = {"beam": 2, "max_len_b": 4}
    first, _, last = interface.translate(lines, **options)
    monkeypatch.setattr(interface.task, "__class__", Choosing)
    assert interface.translate(lines, **options) == [first, "", last]


def test_single_tensors_have_all_arguments(pretrained):
    interface = pretrained(bpe=None)
    word = interface.tgt_dict.index("un1")
    allowed = {"prefix_allowed_tokens_fn": lambda batch, prefix: [word, interface.tgt_dict.eos()]}
    tokens = interface.encode("an1 av2 an3")
    (alone,) = interface.generate(tokens, beam=1, max_len_b=3, **allowed)
    ((together,),) = interface.generate([tokens], beam=1, max_len_b=3, **allowed)
    assert alone["tokens"].tolist() == together["tokens"].tolist()
    assert set(alone["tokens"].tolist()) <= {word, interface.tgt_dict.eos()}


def test_unknown_options_are_refused(pretrained):
    with pytest.raises(ValueError, match=r"^'max_lenb' is no option of .*did you mean max_len_b\?"):
        pretrained(bpe=None).translate(["an1"], max_lenb=3)


class Words:
    """A sub-word coder whose sub-words are words."""

    def encode(self, text):
        return text

    decode = encode


@pytest.mark.parametrize("topk", [1, 4, 7])
def test_masks_are_filled_with_words(topk):
    """The symbols that are no text are the most probable here."""
    from fairseq.models.roberta.hub_interface import RobertaHubInterface

    words = dictionary_with(*"abcde", "<mask>")
    logits = torch.tensor([5.0, 4.0, 6.0, 0.5, 0.1, 0.2, 0.3, 0.4, 0.0, 0.6])
    task = SimpleNamespace(source_dictionary=words, mask_idx=words.index("<mask>"))

    class Model(torch.nn.Module):
        def forward(self, tokens, **options):
            assert tokens.tolist() == [[0, 4, task.mask_idx, 5, 2]]
            return logits.expand(1, 5, -1), {}

    interface = RobertaHubInterface(SimpleNamespace(bpe=None), task, Model())
    interface.bpe = Words()
    filled = interface.fill_mask("a <mask> b", topk=topk)
    ranked = ["<mask>", "<unk>", "d", "c", "b", "a", "e"][:topk]
    assert [word for _, _, word in filled] == ranked
    probabilities = [logits.softmax(0)[words.index(word)].item() for word in ranked]
    assert [value for _, value, _ in filled] == pytest.approx(probabilities)
    assert [text for text, _, _ in filled] == [f"a{word} b" for word in ranked]
    with pytest.raises(ValueError, match="^the input has 2 <mask>; allowed: 1$"):
        interface.fill_mask("<mask> <mask>")


def test_encoding_leaves_the_dictionary_of_bart_alone():
    from fairseq.models.bart.hub_interface import BARTHubInterface

    words = dictionary_with("a", "b")
    before = dict(words.indices), list(words.count)
    interface = SimpleNamespace(task=SimpleNamespace(source_dictionary=words))
    interface.bpe, interface.max_positions = SimpleNamespace(encode=str), (9, 9)
    tokens = BARTHubInterface.encode(interface, "a new b", "b")
    assert tokens.tolist() == [0, 4, words.unk(), 5, 2, 5, 2]
    assert (words.indices, words.count) == before
