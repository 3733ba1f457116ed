"""Dictionaries of fairseq, made of their symbols."""

from fairseq.data import Dictionary


def dictionary_with(*symbols):
    """The four special symbols and these, in their order."""
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return dictionary


def numbered_words(size):
    """A dictionary of ``size`` entries, the special symbols included: w0, w1 .."""
    return dictionary_with(*(f"w{number}" for number in range(size - len(Dictionary()))))
