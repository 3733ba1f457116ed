"""Labels for Levenshtein and insertion transformers."""

import random

import pytest

from fairseq_ext.compat.versions.edit_paths import edit_distances, suggested_ed2_path
from reference.edit_path import edit_path

PAD, UNK = 1, 3


def sentences(rng, count, words):
    return [[rng.randrange(4, 4 + words) for _ in range(rng.randrange(7))] for _ in range(count)]


@pytest.mark.parametrize("words", [1, 2, 3, 6])
def test_paths_equal_the_reference(words):
    rng = random.Random(words)
    inputs, outputs = sentences(rng, 40, words), sentences(rng, 40, words)
    paths = suggested_ed2_path(inputs, outputs, PAD)
    for path, source, target in zip(paths, inputs, outputs):
        assert path == edit_path(source, target, PAD), (source, target)


def test_paths_turn_one_sentence_into_the_other():
    rng = random.Random(5)
    inputs, outputs = sentences(rng, 50, 4), sentences(rng, 50, 4)
    distances = edit_distances(inputs, outputs)
    paths = suggested_ed2_path(inputs, outputs, PAD)
    for path, distance, source, target in zip(paths, distances, inputs, outputs):
        insertions = [words if words != [PAD] else [] for words in path[:-1]]
        result = list(insertions[0])
        for word, is_deleted, behind in zip(source, path[-1], insertions[1:]):
            result += ([] if is_deleted else [word]) + behind
        assert result == target
        assert distance[len(source), len(target)] == sum(path[-1]) + sum(map(len, insertions))


def test_longest_of_a_batch_do_not_matter():
    short, long = [4, 5, 6], [6, 5, 4, 4, 5, 6, 7, 8]
    (alone,) = suggested_ed2_path([short], [long[:2]], PAD)
    assert suggested_ed2_path([short, long], [long[:2], short], PAD)[0] == alone


def test_targets_of_the_levenshtein_transformer(capsys):
    import torch
    from fairseq.models.nat import levenshtein_utils

    outputs = torch.tensor([[0, 5, 6, 7, 2], [0, 8, 2, PAD, PAD]])
    inputs = torch.tensor([[0, 5, 2], [0, 2, PAD]])  # words are only missing
    masks, tokens, counts = levenshtein_utils._get_ins_targets(inputs, outputs, PAD, UNK)
    # how many words stand behind each word of the input, and the output without them
    assert counts.tolist() == [[0, 2], [1, 0]]
    assert tokens.tolist() == [[0, 5, UNK, UNK, 2], [0, UNK, 2, PAD, PAD]]
    assert torch.equal(masks, tokens == UNK)
    inputs = torch.tensor([[0, 5, 9, 2, PAD], [0, 2, PAD, PAD, PAD]])
    deleted = levenshtein_utils._get_del_targets(inputs, outputs, PAD)
    assert deleted[0].tolist() == [0, 0, 1, 0, 0] and deleted[1].sum() == 0
    assert capsys.readouterr().out == ""


def test_targets_of_the_insertion_transformer():
    import torch
    from fairseq.models.nat import insertion_transformer

    inputs, outputs = torch.tensor([[0, 5, 2]]), torch.tensor([[0, 5, 6, 7, 2]])
    labels = insertion_transformer._get_ins_targets(inputs, outputs, PAD, UNK, 9)
    assert labels.shape == (1, 2, 9)
    # both words may come first between 5 and the end
    assert labels[0, 1].tolist() == [0, 0, 0, 0, 0, 0, 0.5, 0.5, 0]
    assert labels[0, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0]
