"""The rows of a search: which functions reorder a decoder's state, and what a step does to them."""

import torch
from fairseq.models import FairseqIncrementalDecoder
from torch import nn

from fairseq_ext.common.search_rows import SearchRows, reorder_functions


class Memory(nn.Module):
    """A module with a state of one number for each row."""

    def reorder_incremental_state(self, incremental_state, new_order):
        incremental_state["memory"] = incremental_state["memory"].index_select(0, new_order)


class Decoder(FairseqIncrementalDecoder):
    """Two modules, one of which has a state."""

    def __init__(self):
        super().__init__(None)
        self.memory, self.plain = Memory(), nn.Linear(1, 1)

    def reorder_incremental_state(self, incremental_state, new_order):
        incremental_state["sum"] = incremental_state["sum"].index_select(0, new_order)
        return incremental_state


class Renewing(Decoder):
    """Returns a state of its own instead of changing the one that it is given."""

    def reorder_incremental_state(self, incremental_state, new_order):
        return {**incremental_state, "sum": incremental_state["sum"].index_select(0, new_order)}


class Scripting(Decoder):
    """Reorders all of its state by itself."""

    def reorder_incremental_state_scripting(self, incremental_state, new_order):
        raise NotImplementedError


class Ensemble:
    """What a search reads of fairseq's ensemble: sources are numbers, one for each row."""

    models_size = 1

    def __init__(self, decoder):
        self.models = [nn.Module()]
        self.models[0].decoder = decoder

    def has_incremental_states(self):
        return True

    def forward_encoder(self, net_input):
        return net_input["src_tokens"][:, 0]

    def reorder_encoder_out(self, encoded, order):
        return encoded.index_select(0, order)


def rows_of(beam, decoder=None):
    decoder = decoder or Decoder()
    tokens = torch.tensor([[7, 2], [8, 2]])
    empty = tokens.new_full((4,), 1)
    rows = SearchRows(Ensemble(decoder), {"src_tokens": tokens}, beam, empty, begin=2)
    count = len(rows.tokens)
    rows.states[0].update(memory=torch.arange(count), sum=torch.arange(count))
    return rows


def test_modules_with_state_are_reordered_and_no_others():
    decoder = Decoder()
    expected = [decoder.reorder_incremental_state, decoder.memory.reorder_incremental_state]
    assert reorder_functions(decoder) == expected
    scripting = Scripting()
    assert reorder_functions(scripting) == [scripting.reorder_incremental_state_scripting]


def test_a_state_that_is_returned_takes_the_place_of_the_one_before():
    rows = rows_of(beam=2, decoder=Renewing())
    rows.go_on(0, torch.tensor([3, 4, 5, 6]), torch.tensor([1, 0, 3, 3]), beam=2)
    assert rows.states[0]["sum"].tolist() == rows.states[0]["memory"].tolist() == [1, 0, 3, 3]


def test_all_rows_begin_alike():
    rows = rows_of(beam=2)
    assert rows.tokens.tolist() == [[2, 1, 1, 1]] * 4
    assert rows.encoded.tolist() == [7, 7, 8, 8]


def test_rows_of_a_sentence_move_without_their_source():
    rows = rows_of(beam=2)
    rows.go_on(0, torch.tensor([4, 5, 6, 7]), torch.tensor([1, 0, 2, 2]), beam=2)
    assert rows.tokens[:, 1].tolist() == [4, 5, 6, 7]
    assert rows.states[0]["memory"].tolist() == rows.states[0]["sum"].tolist() == [1, 0, 2, 2]
    assert rows.encoded.tolist() == [7, 7, 8, 8]


def test_a_finished_sentence_leaves_with_its_source():
    rows = rows_of(beam=2)
    rows.go_on(0, torch.tensor([4, 5]), torch.tensor([3, 2]), beam=2)
    assert rows.tokens[:, :2].tolist() == [[2, 4], [2, 5]]
    assert rows.states[0]["memory"].tolist() == [3, 2]
    assert rows.encoded.tolist() == [8, 8]


def test_greedy_search_moves_nothing():
    rows = rows_of(beam=1)
    rows.go_on(0, torch.tensor([4, 5]), torch.tensor([0, 1]), beam=1)
    assert rows.states[0]["memory"].tolist() == [0, 1]
