"""--eval-bleu-print-samples in the tasks of several lang pairs."""

import pytest
from common import inprocess
from options.systems import SYSTEMS


@pytest.mark.parametrize("name", ["dual_transformer", "routed_gru"])
def test_a_sample_of_every_pair_is_printed(data, tmp_path, name):
    system = SYSTEMS[name]
    words = system.words(data[system.data], "--max-tokens", 400, "--max-update", 1, "--no-save")
    words += ["--save-dir", tmp_path, "--eval-bleu", "--eval-bleu-print-samples"]
    words += ["--eval-bleu-args", '{"beam": 1, "max_len_b": 4}']
    with inprocess.logged_lines() as lines:
        inprocess.train(*words)
    references = (data.toy_corpus.text / "valid.yy").read_text(encoding="utf-8").splitlines()
    for pair in ("xx-yy", "yy-xx" if name == "dual_transformer" else "xx-zz"):
        for kind in ("hypothesis", "reference"):
            assert sum(line.startswith(f"{pair} example {kind}: ") for line in lines) == 1
    label = "xx-yy example reference: "
    (line,) = (line for line in lines if line.startswith(label))
    assert line[len(label) :] in references
