"""Task tokens: in the dictionaries, in front of every source, and nowhere that users look."""

import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset, indexed_dataset
from streams.directions import WORDS
from toy_sentences import END

from fairseq_ext.inference.inputs import encode_words
from fairseq_ext.routed.task_tokens import (
    PrintedSources,
    TaskDictionary,
    add_task_tokens,
    token_of,
    without_task_token,
)
from fairseq_ext.streams.task import StreamsTask


def test_task_tokens_do_not_depend_on_the_order_of_the_pairs(routed_task):
    symbols = []
    for pairs in ("xx-yy,xx-zz,zz-yy", "zz-yy,xx-zz,xx-yy"):
        task, model = routed_task(pairs=pairs)
        symbols.append({lang: words.symbols for lang, words in task.dictionaries.items()})
        assert model.sources["xx"].num_embeddings == len(task.dictionaries["xx"])
    assert symbols[0] == symbols[1]
    assert symbols[0]["xx"][-2:] == ["__task_xx-yy__", "__task_xx-zz__"]
    assert symbols[0]["zz"][-1] == "__task_zz-yy__" and len(symbols[0]["yy"]) == WORDS["yy"]


def test_task_tokens_are_added_once_and_not_to_those_of_other_tasks():
    words = TaskDictionary()
    add_task_tokens(words, ["a-c", "a-b"])
    size = len(words)
    add_task_tokens(words, ["a-b", "a-c"])
    assert len(words) == size and words.index(token_of("a-b")) == size - 2
    with pytest.raises(ValueError, match="has the task tokens __task_a-b__, __task_a-c__"):
        add_task_tokens(words, ["a-b"])


def test_sentences_begin_with_the_token_of_their_task(routed_task):
    task, _ = routed_task("-s", "xx", "-t", "zz", pairs=None, main=None)
    task.pair = "xx-zz"
    lines = [torch.tensor([5, 6, END]), torch.tensor([END])]
    dataset = task.build_dataset_for_inference(lines, [3, 1])
    token = task.dictionaries["xx"].index("__task_xx-zz__")
    assert token != task.dictionaries["xx"].unk()
    assert [dataset[number]["source"].tolist() for number in range(2)] == [
        [token, 5, 6, END],
        [token, END],
    ]
    assert dataset.src_sizes.tolist() == [4, 2]
    printed = task.source_dictionary.string(dataset[0]["source"])
    assert printed == task.dictionaries["xx"].string(lines[0]) != ""


def test_training_data_begin_with_the_token_too(routed_task, monkeypatch):
    task, _ = routed_task()
    lines = [torch.tensor([5, 6, END]), torch.tensor([END])]
    words = task.dictionaries
    seen = []

    def plain(self, path, split, pair, combine):
        seen.append(self.max_source_tokens)
        data = ListDataset(lines, [3, 1])
        return LanguagePairDataset(data, data.sizes, words["xx"], data, data.sizes, words["yy"])

    monkeypatch.setattr(StreamsTask, "_load_pair", plain)
    dataset = task._load_pair("", "train", "xx-yy", False)
    limit = task.cfg.max_source_positions
    assert seen == [limit - 1], "--truncate-source leaves a place free"
    token = words["xx"].index("__task_xx-yy__")
    assert dataset[0]["source"].tolist() == [token, 5, 6, END]
    assert dataset[0]["target"].tolist() == [5, 6, END]
    assert dataset.sizes.tolist() == [[4, 3], [2, 1]]


@pytest.mark.parametrize("pairs", ["xx-yy,xx-zz", "yy-xx,xx-yy"])
def test_words_that_are_spelt_like_tokens_are_unknown(routed_task, tmp_path, pairs):
    """In texts that are binarised, read as they are, typed, and given in Python."""
    task, _ = routed_task(pairs=pairs, main=pairs.split(",")[0])
    plain = Dictionary.load(f"{task.cfg.data}/dict.xx.txt")
    line = "an1 __task_xx-yy__ av2 __task_xx-zz__"
    binarised = plain.encode_line(line, add_if_not_exist=False).tolist()
    assert binarised[1] == binarised[3] == plain.unk()
    (tmp_path / "text").write_text(f"{line}\n")
    words = task.dictionaries["xx"]
    raw = indexed_dataset.make_dataset(str(tmp_path / "text"), "raw", dictionary=words)
    assert raw[0].tolist() == binarised
    assert encode_words(words, line).tolist() == binarised
    assert encode_words(PrintedSources(words), line).tolist() == binarised
    # where texts are compared, different words are different numbers
    compared = words.encode_line(line + " new", append_eos=False).tolist()
    assert len({*compared}) == len(compared)


def test_sentences_are_printed_without_their_token():
    """Also with words and tokens that the dictionary gets later."""
    words = TaskDictionary()
    printed = PrintedSources(words)
    word = words.add_symbol("word")
    add_task_tokens(words, ["a-b"])
    sentence = torch.tensor([words.index(token_of("a-b")), word, words.eos()])
    assert words.string(sentence) == "__task_a-b__ word"
    assert printed.string(sentence) == "word" == printed.string(sentence[1:])
    assert printed.string(sentence.unsqueeze(0)) == "word"


def test_alignments_begin_behind_the_token():
    assert without_task_token([(1, 0), (3, 2)]) == [(0, 0), (2, 2)]
    assert without_task_token([["0.5", "0.2", "0.3"]]) == [["0.2", "0.3"]]
    assert without_task_token(torch.tensor([])).numel() == 0
