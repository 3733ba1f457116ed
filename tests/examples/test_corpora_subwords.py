"""Codes for fastBPE against a slow learner; both spellings are undone exactly."""

import random
from collections import Counter

import pytest
from corpora.byte_pairs import learn_codes
from corpora.subwords import FastBPE, sample

from fairseq_ext.tools import UsageError


def slow_codes(words, vocabulary):
    """Byte-pair encoding as one writes it first: count all pairs anew before each merge."""
    spelled = {word: (*word[:-1], word[-1] + "</w>") for word in words}
    known = {symbol for symbols in spelled.values() for symbol in symbols}
    codes, banned = [], set()
    while len(known) < vocabulary:
        pairs = Counter()
        for word, symbols in spelled.items():
            for left, right in zip(symbols, symbols[1:]):
                if left[0].isalnum() == right[0].isalnum():
                    pairs[left, right] += words[word]
        usable = [(-count, pair) for pair, count in pairs.items() if pair not in banned]
        if not usable or -min(usable)[0] < 2:
            return codes
        count, pair = min(usable)
        merged = "".join(pair)
        if merged in known:
            banned.add(pair)
            continue
        codes.append((*pair, -count))
        known.add(merged)
        for word, symbols in spelled.items():
            result = []
            for symbol in symbols:
                # `open` marks a symbol that was merged already: it takes part in no second merge
                if result and result[-1] == (pair[0], True) and symbol == pair[1]:
                    result[-1] = (merged, False)
                else:
                    result.append((symbol, True))
            spelled[word] = tuple(symbol for symbol, _ in result)
    return codes


@pytest.mark.parametrize("seed", range(5))
def test_codes_equal_those_of_the_slow_learner(seed):
    rng = random.Random(seed)
    words = Counter(
        {
            "".join(rng.choice("aaabbc.-") for _ in range(rng.randint(1, 8))): rng.randint(1, 9)
            for _ in range(40)
        }
    )
    for vocabulary in (12, 25, 60):
        codes = learn_codes(words, vocabulary)
        assert codes == slow_codes(words, vocabulary)
        assert codes


def test_codes_never_join_letters_with_signs():
    words = Counter({"Sofa.": 50, "Sofa": 40, "(Sofa)...": 30, "Stra\u00dfe,": 9})
    for left, right, _ in learn_codes(words, 60):
        merged = (left + right).replace("</w>", "")
        assert merged.isalnum() or not any(character.isalnum() for character in merged)


def test_too_small_a_vocabulary():
    with pytest.raises(UsageError, match="--vocabulary 3: the text alone has 4 characters"):
        learn_codes(Counter({"abcd": 1}), 3)


def test_normalisation_is_nfkc_with_single_spaces():
    assert FastBPE.normalise(" \ufb01ne\u00a0 \u2460 ") == "fine 1"


def test_fastbpe_is_undone_exactly(tmp_path):
    pytest.importorskip("fastBPE", reason="fastBPE is not installed: it needs a C++ compiler")
    path = tmp_path / "text.de"
    lines = ["Ein Sofa, zwei Sofas.", "Die Stra\u00dfe (nass)!", "", "Ein Mann l\u00e4uft."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    FastBPE.learn([path], 50, 0, tmp_path / "codes")
    pieces = FastBPE(tmp_path / "codes").encode(lines)
    assert any("@@ " in line for line in pieces)
    # what fairseq's --bpe fastbpe does
    assert [(line + " ").replace("@@ ", "").rstrip() for line in pieces] == lines


def test_sample_is_a_function_of_the_text(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text("".join(f"{path.name}{n}\n" for n in range(50)), encoding="utf-8")
    assert len(list(sample(paths, 0))) == 100
    drawn = list(sample(paths, 20))
    assert len(set(drawn)) == 20
    assert {line[0] for line in drawn} == {"a", "b"}
    assert drawn == list(sample(paths, 20))
