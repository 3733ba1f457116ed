"""Generated speech and its evaluation (fairseq_ext/compat/examples/synthesis_scripts.py)."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_ext.compat.examples import synthesis_scripts


def test_texts_with_quotes_hide_no_recording(tmp_path):
    (tmp_path / "a.tsv").write_text('id\tsyn\ttext\n1\ta\t"so\n2\tb\tno" he\n', encoding="utf-8")
    module = SimpleNamespace()
    synthesis_scripts.every_recording_is_evaluated(module)
    lines = module.load_eval_spec(str(tmp_path / "a.tsv"))
    assert [(line["syn"], line["text"]) for line in lines] == [("a", '"so'), ("b", 'no" he')]


def test_another_rate():
    pytest.importorskip("torchaudio", reason="generate_waveform resamples with torchaudio")
    import torchaudio

    module = SimpleNamespace(torchaudio=torchaudio)
    synthesis_scripts.generated_speech_has_any_rate(module)
    apply = module.torchaudio.sox_effects.apply_effects_tensor
    waveform, rate = apply(torch.rand(1, 800), 16000, [["rate", "8000"]])
    assert (waveform.shape, rate) == ((1, 400), 8000)


def test_attention_is_a_tensor():
    calls = []
    module = SimpleNamespace(dump_result=lambda *values: calls.append(values))
    synthesis_scripts.attentions_are_dumped(module)
    for attention in (np.ones((2, 3)), None):
        module.dump_result(False, "args", "vocoder", "id", "text", attention, "eos", "rest")
    assert calls[0][5].numpy().shape == (2, 3)
    assert calls[1][5:] == (None, "eos", "rest")


@pytest.mark.slow
def test_python_m_runs_the_patched_module(run, tmp_path):
    # other modules stand in for what the project's environment lacks
    (tmp_path / "torchaudio.py").write_text("class transforms: pass\n", encoding="utf-8")
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").touch()
    (tmp_path / "scipy" / "interpolate.py").write_text("interp1d = None\n", encoding="utf-8")
    (tmp_path / "a.tsv").write_text('ref\tsyn\ttext\na\tb\t"so\nc\td\tno"\n', encoding="utf-8")
    code = (
        "import runpy, sys; sys.path.insert(0, ''); "
        "name = 'examples.speech_synthesis.evaluation.eval_sp'; sys.argv[1:] = ['a.tsv']; "
        "names = runpy.run_module(name, run_name='__main__', alter_sys=True); "
        "print(len(names['load_eval_spec']('a.tsv')))"
    )
    assert run(sys.executable, "-c", code, cwd=tmp_path).rstrip().endswith("2")
