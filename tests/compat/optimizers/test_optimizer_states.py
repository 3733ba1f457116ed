"""Parameters are taken out of a saved optimizer state, and out of no other."""

from fairseq_ext.compat.optimizers.optimizer_states import (
    SavedParameter,
    without_dropped_parameters,
)


def test_other_states_are_left_alone():
    state = {"state": {0: {"step": 1}}, "param_groups": [{"params": [0, 1]}]}
    staying, dropped = SavedParameter(4, False), SavedParameter(4, True)
    assert without_dropped_parameters(state, [staying, staying]) is state
    assert without_dropped_parameters(state, [staying, dropped, staying]) is state
    assert without_dropped_parameters({"loss_scale": 2}, [dropped]) == {"loss_scale": 2}
    cut = without_dropped_parameters(state, [staying, dropped])
    assert cut["param_groups"] == [{"params": [0]}] and cut["state"] == {0: {"step": 1}}
