"""prepare.py: which sentences each pair has, and that a cut holds what it says."""

import pytest
from multiway_recipe.corpora import cut, share_lines
from recipe_tools import RecipeError

PAIRS = ("de-en", "de-fr", "en-fr")


def test_shares_are_disjoint_complete_and_of_equal_size():
    shares = share_lines(100, PAIRS, 1, "disjoint")
    assert sorted(sum(shares.values(), [])) == list(range(100))
    assert sorted(map(len, shares.values())) == [33, 33, 34]
    assert shares == share_lines(100, PAIRS, 1, "disjoint")
    assert shares != share_lines(100, PAIRS, 2, "disjoint")
    # dealt out at random, not in blocks of the text
    assert max(shares["de-en"]) > 66 > 33 > min(shares["de-en"])
    whole = share_lines(100, PAIRS, 1, "all")
    assert all(sorted(lines) == list(range(100)) for lines in whole.values())


def test_smaller_cuts_are_parts_of_larger_ones():
    lines = share_lines(1000, PAIRS, 1, "disjoint")["de-fr"]
    few, more = cut(lines, 5), cut(lines, 40)
    assert (len(few), len(more)) == (17, 133) and set(few) < set(more) < set(lines)
    assert len(cut(lines[:3], 1)) == 1


@pytest.fixture(scope="module")
def data(prepared_multiway):
    return prepared_multiway


def sentences(data, folder, stem, language):
    """Binarised sentences of a folder, in plain text."""
    from fairseq.data import Dictionary, data_utils

    folder = data / "bin" / folder
    name = folder / f"dict.{language}.txt"
    words = Dictionary.load(str(name if name.is_file() else folder / "dict.txt"))
    found = data_utils.load_indexed_dataset(str(folder / stem), words)
    return [words.string(found[n], "sentencepiece") for n in range(len(found))]


def plain(data, language, lines="", split="train"):
    """Lines of the raw text: all, or those whose numbers a file below lines/ holds."""
    text = (data / "raw" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
    if not lines:
        return text
    return [text[int(number) - 1] for number in (data / "lines" / lines).read_text().split()]


def test_all_pairs_have_all_sentences_and_one_dictionary_per_language(data):
    for pair in PAIRS:
        for language in pair.split("-"):
            found = sentences(data, "all", f"train.{pair}.{language}", language)
            assert found == plain(data, language)
    dictionaries = [(data / "bin" / "all" / f"dict.{it}.txt").read_bytes() for it in ("de", "en")]
    assert dictionaries[0] != dictionaries[1]


def test_cuts_hold_the_sentences_of_their_pair_and_no_other(data):
    total = 0
    for pair in PAIRS:
        source, target = pair.split("-")
        sides = [sentences(data, "de-en.50", f"train.{pair}.{it}", it) for it in (source, target)]
        assert sides == [plain(data, it, f"de-en.50.{pair}") for it in (source, target)]
        assert len(sides[0]) == (20 if pair == "de-en" else 40)
        total += len(sides[0])
        valid = sentences(data, "de-en.50", f"valid.{pair}.{source}", source)
        assert valid == plain(data, source, split="valid")
    numbers = [(data / "lines" / f"de-en.50.{pair}").read_text().split() for pair in PAIRS]
    assert len(set(sum(numbers, []))) == total


@pytest.mark.parametrize("direction, other", [("de-en", "en-fr"), ("en-de", "de-fr")])
def test_language_models_see_the_other_pairs_only(data, direction, other):
    target = direction.split("-")[1]
    found = sentences(data, f"lm.{direction}", "train", target)
    assert found == plain(data, target, f"de-en.50.{other}")
    assert sentences(data, f"lm.{direction}", "valid", target) == plain(data, target, split="valid")


def test_line_counts_must_agree_in_all_languages(script, small_multiway, raw3, tmp_path):
    with open(raw3 / "val.fr", "a", encoding="utf-8") as stream:
        stream.write("un\n")
    words = [str(raw3), str(tmp_path / "data"), "--recipe", str(small_multiway)]
    with pytest.raises(RecipeError, match=r"val\.fr has 13 lines and \S*val\.de 12"):
        script("prepare", "multiway").main(words)
    assert not (tmp_path / "data").exists()


def test_a_second_call_does_nothing_and_other_cuts_are_refused(
    script, small_multiway, raw3, data, capsys
):
    words = [str(raw3), str(data), "--recipe", str(small_multiway)]
    main = script("prepare", "multiway").main
    main(words)
    assert "up to date" in capsys.readouterr().out
    text = small_multiway.read_text(encoding="utf-8")
    small_multiway.write_text(text.replace("percent = 50", "percent = 20"), encoding="utf-8")
    with pytest.raises(RecipeError, match="made with other cuts; .* --force"):
        main(words)
