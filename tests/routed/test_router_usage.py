"""`fairseq-ext router-usage`: means of tau against loops over tokens, and a trained checkpoint."""

import csv
import shutil

import pytest
import torch
from common import inprocess
from common.exchanged import with_two_words_exchanged
from fairseq.data import Dictionary
from matplotlib.figure import Figure

from fairseq_ext import __main__ as command
from fairseq_ext.routed.commands import figures, router_usage, token_shares
from fairseq_ext.tools import UsageError

PAD, END = 1, 2


def dictionary(lang, size):
    words = Dictionary()
    for number in range(size):
        words.add_symbol(f"{lang}{number}", n=size - number)
    return words


DICTIONARIES = {"xx": dictionary("x", 7), "yy": dictionary("y", 5)}


class Fake:
    """Weights that say where they came from: layer, task, sentence, position."""

    def router_weights(self, src_tokens, prev_output_tokens, pair):
        def weights(tokens, offset):
            logits = torch.stack([tokens * 0.3, tokens * 0 + offset, tokens.cumsum(1) * 0.1], 2)
            return logits.softmax(dim=2)

        by_layer = {"encoder.0.forwards": weights(src_tokens, 1.0)}
        by_layer["encoder.0.backwards"] = weights(src_tokens, 2.0)
        by_layer["decoder.0"] = weights(prev_output_tokens, 0.5)
        return by_layer


def samples(rng):
    """Two batches; sources padded at the left, targets at the right."""
    for size in (3, 2):
        source, target = torch.full((size, 5), PAD), torch.full((size, 4), PAD)
        previous = target.clone()
        for row in range(size):
            length = int(torch.randint(1, 5, (1,), generator=rng))
            words = torch.randint(4, 11, (length,), generator=rng)
            source[row, 5 - length - 1 :] = torch.cat([words, torch.tensor([END])])
            length = int(torch.randint(1, 4, (1,), generator=rng))
            words = torch.randint(4, 9, (length,), generator=rng)
            target[row, : length + 1] = torch.cat([words, torch.tensor([END])])
            previous[row, : length + 1] = torch.cat([torch.tensor([END]), words])
        inputs = {"src_tokens": source, "prev_output_tokens": previous}
        yield {"net_input": inputs, "target": target}


@pytest.fixture
def batches():
    return list(samples(torch.Generator().manual_seed(1)))


def literal_mean(batches, layers, side, chosen):
    """Mean of tau over the positions whose symbol is in `chosen`, one position after the other."""
    total, count = [0.0] * 3, 0
    for sample in batches:
        inputs = sample["net_input"]
        weights = Fake().router_weights(**inputs, pair="xx-yy")
        tokens = inputs["src_tokens"] if side == "source" else sample["target"]
        for layer in layers:
            for row in range(tokens.size(0)):
                for place in range(tokens.size(1)):
                    if tokens[row, place] != PAD and int(tokens[row, place]) in chosen:
                        tau = weights[layer][row, place].tolist()
                        total = [sums + addend for sums, addend in zip(total, tau)]
                        count += 1
    return [sums / count for sums in total] if count else None, count


BOTH = ["encoder.0.forwards", "encoder.0.backwards"]


def symbols_of(row, encoder):
    """The indices that a row of the table is about; 10 is the task token of the source."""
    words = DICTIONARIES["xx" if encoder else "yy"]
    if row.kind == "all":
        return range(len(words))
    if row.kind != "frequency":
        return [words.index(row.category)]
    ordinary = [index for index in range(4, len(words)) if not (encoder and index == 10)]
    return {"1-2": ordinary[:2], "3-4": ordinary[2:4], "5-": ordinary[4:]}[row.category]


def test_means_against_loops(batches):
    by_layer = token_shares.collect(Fake(), "xx-yy", batches, DICTIONARIES)
    assert list(by_layer) == ["encoder", BOTH[0], BOTH[1], "decoder.0"]
    rows = token_shares.rows_of("xx-yy", by_layer, DICTIONARIES, [2, 4], 3, task_token=10)
    seen = set()
    for row in rows:
        encoder = row.layer.startswith("encoder")
        layers = BOTH if row.layer == "encoder" else [row.layer]
        side = "source" if encoder else "target"
        expected, count = literal_mean(batches, layers, side, symbols_of(row, encoder))
        assert row.tokens * len(layers) == count  # the encoder's layers read the same tokens
        assert row.share == pytest.approx(expected, abs=1e-6)
        assert sum(row.share) == pytest.approx(1)
        seen.add((row.layer, row.kind))
    assert {kind for layer, kind in seen if layer == "encoder"} == {"all", "symbol", "frequency"}
    assert {kind for layer, kind in seen if layer == "decoder.0"} == {
        *("all", "symbol", "frequency", "token"),
    }


def test_kinds_part_the_tokens(batches):
    by_layer = token_shares.collect(Fake(), "xx-yy", batches, DICTIONARIES)
    rows = token_shares.rows_of("xx-yy", by_layer, DICTIONARIES, [1, 3], 99)
    for layer in by_layer:
        of_layer = [row for row in rows if row.layer == layer]
        whole = next(row.tokens for row in of_layer if row.kind == "all")
        assert whole == sum(row.tokens for row in of_layer if row.kind in ("symbol", "frequency"))
        if layer == "decoder.0":
            words = sum(row.tokens for row in of_layer if row.kind == "frequency")
            assert words == sum(row.tokens for row in of_layer if row.kind == "token")


def test_means_do_not_depend_on_padding(batches):
    def shares(samples):
        by_layer = token_shares.collect(Fake(), "xx-yy", samples, DICTIONARIES)
        return {layer: sums.share() for layer, sums in by_layer.items() if layer == "decoder.0"}

    wider = [dict(sample) for sample in batches]
    for sample in wider:
        more = torch.full((sample["target"].size(0), 3), PAD)
        previous = torch.cat([sample["net_input"]["prev_output_tokens"], more], dim=1)
        sample["target"] = torch.cat([sample["target"], more], dim=1)
        sample["net_input"] = {**sample["net_input"], "prev_output_tokens": previous}
    assert shares(wider) == shares(batches)
    # the twin that takes padding for words is caught
    for sample in wider:
        sample["target"] = sample["target"].masked_fill(sample["target"].eq(PAD), END)
    assert shares(wider) != shares(batches)


def test_bands_end_with_the_dictionary():
    words = dictionary("x", 7)
    assert token_shares.bands_of(words, [3], [4]) == {"1-3": [5, 6, 7], "4-": [8, 9, 10]}
    assert list(token_shares.bands_of(words, [5, 100], [])) == ["1-5", "6-100"]


def test_bands_of_a_dictionary_of_both_languages(batches):
    """Words rank by how often they are read on their side, not by the counts of both together."""
    words = dictionary("both", 7)
    of_source = [11, 9, 0, 0, 0, 0, 0]  # of the words 4 to 10, which the dictionary has in order
    of_target = [0, 0, 1, 2, 3, 4, 5]
    for side, counts in (("encoder.0", of_source), ("decoder.0", of_target)):
        occurring = torch.tensor([0, 0, 6, 0, *counts])
        sums = {side: token_shares.TokenSums(torch.ones(11, 3).double(), occurring)}
        joined = {"xx": words, "yy": dictionary("both", 7)}
        rows = token_shares.rows_of("xx-yy", sums, joined, [2], 0)
        bands = {row.category: row.tokens for row in rows if row.kind == "frequency"}
        assert bands == ({"1-2": 20} if side == "encoder.0" else {"1-2": 9, "3-": 6})


def test_dictionaries_that_are_not_ordered_by_the_frequency_in_a_language():
    words, task = dictionary("x", 3), dictionary("x", 3)
    task.add_symbol("__task_xx-yy__")
    uncounted = token_shares.uncounted
    assert uncounted("xx", DICTIONARIES) is None
    assert uncounted("xx", {"xx": task, "yy": words}) == "dict.xx.txt is also that of yy"
    assert uncounted("zz", {**DICTIONARIES, "zz": words}) is None
    for index in range(words.nspecial, len(words)):
        words.count[index] = 100
    assert uncounted("xx", {"xx": words}) == "dict.xx.txt has one count for all words"


@pytest.mark.parametrize("text", ["", "a", "5,3", "3,3", "0,2", "2,-1"])
def test_wrong_bands_are_named(text):
    with pytest.raises(UsageError, match="--bands '.*': allowed: increasing numbers from 1"):
        router_usage.parse_bands(text)


# ---------------------------------------------------------------- the bars of the pictures


def read_table(text):
    """The lines of a .tsv file as dictionaries, the share of each block under "share"."""
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    for row in rows:
        row["share"] = [float(row[name]) for name in row if name.startswith("block ")]
    return rows


def groups_of(panel):
    """{label: bars} of a panel, in the order in which they were drawn."""
    return {bars.get_label(): bars.patches for bars in panel.containers}


def check_layers(figure, rows):
    """A bar of the table's share for each layer (panel), task (colour) and block (place)."""
    whole = [row for row in rows if row["kind"] == "all"]
    layers = list(dict.fromkeys(row["layer"] for row in whole))
    assert [panel.get_title() for panel in figure.axes] == layers
    for panel in figure.axes:
        shares = {row["task"]: row["share"] for row in whole if row["layer"] == panel.get_title()}
        drawn, right_ends, colours = groups_of(panel), {}, set()
        assert list(drawn) == list(shares)
        for task, bars in drawn.items():
            assert [bar.get_height() for bar in bars] == pytest.approx(shares[task], abs=1e-6)
            colours |= {bar.get_facecolor() for bar in bars}
            for block, bar in enumerate(bars):
                assert bar.get_y() == 0 and round(bar.get_x() + bar.get_width() / 2) == block
                # from left to right in the order of the tasks, no bar over another
                assert bar.get_x() >= right_ends.get(block, block - 0.5) - 1e-9
                right_ends[block] = bar.get_x() + bar.get_width()
        assert len(colours) == len(shares)
        names = [label.get_text() for label in panel.get_xticklabels()]
        assert names == [f"Block {block + 1}" for block in range(len(whole[0]["share"]))]


def check_categories(figure, rows):
    """For each task, encoder and top decoder layer: a stack of the table's shares by category."""
    top = [row["layer"] for row in rows if row["layer"].startswith("decoder")][-1]
    tasks = dict.fromkeys(row["task"] for row in rows)
    places = [(task, layer) for task in tasks for layer in ("encoder", top)]
    assert [panel.get_title() for panel in figure.axes] == [", ".join(place) for place in places]
    for panel, place in zip(figure.axes, places):
        of_panel = [row for row in rows if (row["task"], row["layer"]) == place]
        names = [label.get_text() for label in panel.get_xticklabels()]
        assert names == [row["category"] for row in of_panel]
        drawn = groups_of(panel)
        assert list(drawn) == [f"Block {block + 1}" for block in range(len(of_panel[0]["share"]))]
        for number, row in enumerate(of_panel):
            bars, floor = [patches[number] for patches in drawn.values()], 0.0
            assert [bar.get_height() for bar in bars] == pytest.approx(row["share"], abs=1e-6)
            for bar in bars:
                assert round(bar.get_x() + bar.get_width() / 2, 6) == number
                assert bar.get_y() == pytest.approx(floor, abs=1e-6)
                floor += bar.get_height()
            assert floor == pytest.approx(1)


PICTURES = [
    pytest.param(figures.draw_layers, check_layers, id="layers"),
    pytest.param(figures.draw_categories, check_categories, id="categories"),
]


@pytest.fixture
def rows(batches):
    """Of two tasks whose shares differ."""
    table, by_pair = [], {"xx-yy": batches, "xx-zz": batches[:1]}
    words = {**DICTIONARIES, "zz": DICTIONARIES["yy"]}
    for pair, some in by_pair.items():
        sums = token_shares.collect(Fake(), pair, some, words)
        table += token_shares.rows_of(pair, sums, words, [2, 4], 3)
    return table


@pytest.mark.parametrize("draw, check", PICTURES)
def test_bars_are_as_high_as_the_table_says(rows, draw, check):
    table = read_table("\n".join(token_shares.table(rows)))
    check(draw(rows), table)
    # the twins that take the next row's shares, or the next block's, are caught
    for wrong in (
        [row._replace(share=other.share) for row, other in zip(rows, rows[1:] + rows[:1])],
        [row._replace(share=row.share[1:] + row.share[:1]) for row in rows],
    ):
        with pytest.raises(AssertionError):
            check(draw(wrong), table)


# ---------------------------------------------------------------- a trained checkpoint

PAIRS = "xx-yy,xx-zz"
TRAIN = ["--task", "routed_mtl", "--lang-pairs", PAIRS, "--main-pair", "xx-yy"]
TRAIN += ["--embed-dim", 8, "--hidden-size", 6, "--attention-size", 8, "--optimizer", "adam"]
TRAIN += ["--lr", 0.01, "--batch-size", 24, "--max-update", 2, "--no-epoch-checkpoints"]
TRAIN += ["--no-progress-bar", "--disable-validation"]


@pytest.fixture(scope="module")
def trained(toy_corpus, tmp_path_factory):
    """Function (architecture, options) -> its checkpoint after two updates."""

    def make(arch, *flags):
        folder = tmp_path_factory.mktemp(arch)
        inprocess.train(toy_corpus.three, *TRAIN, "--arch", arch, *flags, "--save-dir", folder)
        return folder / "checkpoint_last.pt"

    return make


def call(*words):
    return command.main(["router-usage", *map(str, words)])


def test_files_of_a_checkpoint(trained, toy_corpus, tmp_path, capsys, monkeypatch):
    checkpoint, drawn, save = trained("routed_gru", "--shared-blocks", 2), [], Figure.savefig

    def keep(figure, *words, **options):
        drawn.append(figure)
        return save(figure, *words, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    assert call(checkpoint, toy_corpus.three, "--output", tmp_path / "use", "--tokens", 4) == 0
    with open(tmp_path / "use.tsv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    assert list(rows[0])[-2:] == ["block 1", "block 2"]
    assert {row["task"] for row in rows} == set(PAIRS.split(","))
    layers = ["encoder", "encoder.0.forwards", "encoder.0.backwards", "decoder.0"]
    assert list(dict.fromkeys(row["layer"] for row in rows)) == layers
    for row in rows:
        assert float(row["block 1"]) + float(row["block 2"]) == pytest.approx(1, abs=1e-5)
    # words, the end and the task token of the 24 test sentences
    words = sum(len(line.split()) for line in toy_corpus.lines["xx"][-24:])
    whole = {(r["task"], r["layer"]): int(r["tokens"]) for r in rows if r["kind"] == "all"}
    assert whole["xx-yy", "encoder"] == words + 2 * 24
    assert whole["xx-yy", "encoder.0.forwards"] == words + 2 * 24
    words = sum(len(line.split()) for line in toy_corpus.lines["zz"][-24:])
    assert whole["xx-zz", "decoder.0"] == words + 24
    symbols = {row["category"]: int(row["tokens"]) for row in rows if row["kind"] == "symbol"}
    assert symbols["__task_xx-zz__"] == 24 and "</s>" in symbols
    assert sum(row["kind"] == "token" for row in rows) == 2 * 4
    printed = capsys.readouterr().out
    for name in ("use.png", "use.categories.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert str(tmp_path / name) in printed
    table = read_table((tmp_path / "use.tsv").read_text(encoding="utf-8"))
    joint = "words are counted in the sentences read; dict.yy.txt is also that of "
    assert f"frequency bands of yy: {joint}" in printed
    layers_figure, categories_figure = drawn
    check_layers(layers_figure, table)
    check_categories(categories_figure, table)


def test_data_of_other_tasks_are_not_needed(trained, toy_corpus, tmp_path):
    checkpoint = trained("routed_gru", "--shared-blocks", 2)
    data = tmp_path / "data"
    data.mkdir()
    for path in toy_corpus.three.iterdir():
        if path.name.startswith(("dict.", "test.xx-zz")):
            shutil.copy(path, data)
    flags = ["--pairs", "xx-zz", "--output", tmp_path / "use"]
    assert call(checkpoint, data, *flags) == 0
    with open(tmp_path / "use.tsv", encoding="utf-8") as stream:
        assert {row["task"] for row in csv.DictReader(stream, delimiter="\t")} == {"xx-zz"}


def test_a_training_with_synthetic_pairs(toy_corpus, tmp_path):
    """The checkpoint names the share of streams that are of no interest here."""
    data = tmp_path / "data"
    for folder in (data, data / "bt"):
        shutil.copytree(toy_corpus.two, folder)
    streams = ["--lang-pairs", "xx-yy,xx-yy@bt", "--main-pair", "xx-yy"]
    streams += ["--synthetic-share", 0.3, "--save-dir", tmp_path]
    inprocess.train(data, *TRAIN, "--arch", "routed_gru", *streams)
    output = tmp_path / "use"
    assert call(tmp_path / "checkpoint_last.pt", data, "--output", output) == 0
    rows = read_table((tmp_path / "use.tsv").read_text(encoding="utf-8"))
    assert {row["task"] for row in rows} == {"xx-yy"}


def test_what_cannot_be_shown_is_named(trained, toy_corpus, tmp_path, capsys):
    checkpoint = trained("mtl_full_gru")
    for words, message in (
        ((), "the model has no router"),
        (("--pairs", "zz-xx"), f"--pairs zz-xx: allowed: {PAIRS}"),
        (("--subset", "none"), "no none.xx-yy"),
        (("--max-tokens", 2), "--max-tokens 2: allowed: "),
    ):
        assert call(checkpoint, toy_corpus.three, "--output", tmp_path / "x", *words) == 2
        assert message in capsys.readouterr().err
    assert call(tmp_path / "none.pt", toy_corpus.three, "--output", tmp_path / "x") == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_two_words_exchanged_is_refused(trained, toy_corpus, tmp_path, capsys):
    checkpoint = trained("routed_gru", "--shared-blocks", 2)
    data = with_two_words_exchanged(toy_corpus.three, tmp_path / "data", "yy")
    assert call(checkpoint, data, "--output", tmp_path / "use") == 2
    assert "last.pt: trained with another dictionary of yy" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [data]
