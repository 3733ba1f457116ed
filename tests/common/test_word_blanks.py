"""Which texts BLEU needs a tokeniser for."""

import pytest

from fairseq_ext.common.word_blanks import lacks_blanks


@pytest.mark.parametrize(
    "lines, expected",
    [
        (["一个男人在街上走路。", "两只狗在草地上玩耍，"], True),
        (["男の人が道を歩いています。"], True),
        (["ผู้ชายคนหนึ่งเดินอยู่บนถนน"], True),
        (["一个 男人 在 街上 走路 。"], False),  # cut into words
        (["A man walks down the street.", "北京"], False),
        (["Ein Donaudampfschifffahrtsgesellschaftskapitän"], False),
        (["Мужчина идёт по улице."], False),
        (["남자가 거리를 걷고 있다."], False),  # Korean has blanks
        (["123 !!"], False),
        ([], False),
    ],
)
def test_scripts(lines, expected):
    assert lacks_blanks(lines) is expected
