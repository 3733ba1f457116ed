"""Pictures of L_t along sentences, and against the frequency of words (Fig. 2 and 3)."""

from typing import Any, List

from ...tools.curves.figures import literal, logarithmic, new_figure
from .words import Token, Word, words_of


def draw_sentences(sentences: List[List[Token]], unit: str) -> Any:
    """Return the figure of L_t along sentences (Fig. 3), dotted lines where words begin."""
    longest = max(len(tokens) for tokens in sentences)
    inches = (min(24.0, max(6.0, 0.22 * longest)), 2.4)
    figure, panels = new_figure(len(sentences), 1, inches)
    for panel, tokens in zip(panels, sentences):
        panel.plot(range(len(tokens)), [token.penalty for token in tokens], marker="o", ms=3)
        symbols = [token.symbol for token in tokens]
        if unit != "token":
            for _, places in words_of(symbols, unit):
                panel.axvline(places[0] - 0.5, linestyle=":", color="grey", linewidth=1)
        names = [literal(symbol) for symbol in symbols]
        panel.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
        panel.set_ylabel("L_t")
        panel.set_title(f"sentence {tokens[0].sentence}", fontsize="small")
    return figure


def draw_frequency(words: List[Word], tokens: List[Token]) -> Any:
    """Return the figure of mean L_t against frequency, and L_t against -log P_f (Fig. 2c)."""
    figure, (left, right) = new_figure(2, 2)
    left.scatter([word.frequency for word in words], [word.mean for word in words], s=6)
    # a logarithm has no place for words that the text does not have
    logarithmic(left, "x", "log" if words[-1].frequency else "symlog")
    left.set_xlabel("frequency of the word")
    left.set_ylabel("mean L_t")
    right.scatter([t.nll for t in tokens], [t.penalty for t in tokens], s=2, alpha=0.3)
    right.set_xlabel("-log P_f of the token, in nats")
    right.set_ylabel("L_t")
    return figure
