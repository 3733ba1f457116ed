"""translation_multi_simple_epoch --enable-reservsed-directions-shared-datasets."""

from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, ListDataset
from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager

OPTIONS = ("lang_tok_replacing_bos_eos", "source_dict", "target_dict", "dataset_impl")
OPTIONS += ("left_pad_source", "left_pad_target", "load_alignments", "truncate_source")
OPTIONS += ("enable_lang_ids",)


class Manager(MultilingualDatasetManager):
    """One text of one line, in two languages."""

    def __init__(self, words):
        self.args = Namespace(**dict.fromkeys(OPTIONS), train_subset="train", upsample_primary=1)
        self.args.lang_tok_style = "multilingual"
        self.args.max_source_positions = self.args.max_target_positions = 9
        self.dicts, self.lang_dict, self.read = {"en": words, "de": words}, None, []

    def split_exists(self, split, source, target, *rest):
        return (split, source, target) == ("train", "en", "de")

    def load_data(self, path, dictionary, implementation):
        self.read.append(path)
        word = dictionary.index("a" if path.endswith(".en") else "b")
        return ListDataset([torch.tensor([word, 2])], np.array([2]))


@pytest.mark.parametrize("source_tag", [None, "src", "tgt"])
@pytest.mark.parametrize("target_tag", [None, "tgt"])
@pytest.mark.parametrize("first", ["en", "de"])
def test_both_directions_have_their_tags(source_tag, target_tag, first):
    words = Dictionary()
    for word in ("a", "b", "__en__", "__de__"):
        words.add_symbol(word)
    manager = Manager(words)

    def lines(files):
        items = {}
        for source in (first, {"en": "de", "de": "en"}[first]):
            target = {"en": "de", "de": "en"}[source]
            dataset = manager.load_a_dataset(
                "train",
                "folder",
                source,
                words,
                target,
                words,
                combine=False,
                langpairs_sharing_datasets=files,
                data_category="main",
                langtok_spec=(source_tag, target_tag),
            )
            items[source] = [words.string(dataset[0][side]) for side in ("source", "target")]
            assert dataset.sizes.tolist() == [[len(dataset[0][s]) for s in ("source", "target")]]
        return items

    expected = lines(None)
    tags = {None: "", "src": "__en__ ", "tgt": "__de__ "}
    assert expected["en"] == [tags[source_tag] + "a", tags[target_tag] + "b"]
    manager.read = []
    assert lines({}) == expected
    assert len(manager.read) == 2  # each file is read once
