"""Deep fusion through fairseq's own commands: what a run starts from, trains, stores and needs."""

import shutil

import pytest
import torch
from common.inprocess import configuration, generate, hypotheses, parameters, records, train
from fairseq import checkpoint_utils, options, tasks
from multiway.conftest import SMALL
from streams.directions import write_dictionaries

from fairseq_ext.multiway.deep_fusion import model as deep_fusion
from fairseq_ext.multiway.deep_fusion.model import LANGUAGE, DeepFusionModel, read_checkpoint

SIZES = [word for entry in SMALL.items() for word in entry]
QUICK = ["--optimizer", "adam", "--lr", 0.01, "--max-tokens", 500, "--no-epoch-checkpoints"]
LM_SIZES = ["--embed-dim", 5, "--hidden-size", 7]
LM = ["--task", "language_modeling", "--arch", "gru_lm", *LM_SIZES, "--sample-break-mode", "eos"]
TASK = ["--task", "multiway_translation"]
PAIRS = "xx-zz,yy-zz"


def preprocess_language(run, corpus, data, folder, lang):
    """The text of ``lang`` alone, with the dictionary of ``data`` -> the folder for the LM."""
    words = ["fairseq-preprocess", "--only-source", "--srcdict", data / f"dict.{lang}.txt"]
    for split in ("train", "valid"):
        words += [f"--{split}pref", corpus.text / f"{split}.{lang}"]
    run(*words, "--destdir", folder)
    return folder


class Runs:
    """Trained in the process of the tests: a language model of zz and two models into zz."""

    def __init__(self, folder, run, corpus):
        self.data = corpus.three
        self.lm_data = preprocess_language(run, corpus, self.data, folder / "text", "zz")
        self.lm, self.translation, self.fused = (
            folder / name / "checkpoint_last.pt" for name in ("lm", "translation", "fused")
        )
        few = [*QUICK, "--max-update", 12, "--disable-validation"]
        train(self.lm_data, *LM, *few, "--save-dir", self.lm.parent)
        multiway = [self.data, *TASK, "--lang-pairs", PAIRS, *few]
        train(
            *[*multiway, "--arch", "multiway_gru", *SIZES],
            *["--encoder-hidden-size", "yy=6,xx=11", "--encoder-type", "yy=convolution"],
            *["--save-dir", self.translation.parent],
        )
        train(*multiway, *self.start(), "--save-dir", self.fused.parent)

    def start(self, translation=None, language=None):
        """Options of a run of deep fusion."""
        return [
            *["--arch", "deep_fusion_gru", "--translation-model", translation or self.translation],
            *["--language-model", language or self.lm],
        ]

    def build(self, *flags, data=None, pairs=PAIRS):
        """The model that fairseq-train would begin with."""
        words = [data or self.data, *TASK, "--lang-pairs", pairs, *flags]
        cfg = configuration(options.get_training_parser(), words)
        return tasks.setup_task(cfg.task).build_model(cfg.model)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, run, toy_corpus):
    return Runs(tmp_path_factory.mktemp("fusion"), run, toy_corpus)


def loaded(path):
    [model], *_ = checkpoint_utils.load_model_ensemble_and_task([str(path)])
    return model


def batch(dictionary):
    """Source and decoder inputs of two sentences."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, len(dictionary), (2, 5), generator=generator)
    prev = torch.randint(4, len(dictionary), (2, 6), generator=generator)
    prev[:, 0] = source[:, -1] = dictionary.eos()
    return source, torch.tensor([5, 5]), prev


# ---------------------------------------------------------------- start


@pytest.mark.parametrize("pairs", [PAIRS, "xx-zz", "yy-zz"])
def test_a_run_starts_as_the_translation_model(runs, pairs):
    """W_s is zero. Of a model of several pairs some may be taken."""
    fused, single = runs.build(*runs.start(), pairs=pairs).eval(), loaded(runs.translation).eval()
    assert set(fused.encoders) == {pair.split("-")[0] for pair in pairs.split(",")}
    inputs = batch(fused.dictionaries["zz"])
    for pair in pairs.split(","):
        expected = single(*inputs, pair=pair)[0]
        torch.testing.assert_close(fused(*inputs, pair=pair)[0], expected, rtol=0, atol=1e-6)
    torch.nn.init.ones_(fused.decoders["zz"].readout_language.weight)
    assert (fused(*inputs, pair=pair)[0] - expected).abs().max() > 1e-3


def test_a_run_starts_with_the_states_of_the_language_model(runs):
    fused, language_model = runs.build(*runs.start()).eval(), loaded(runs.lm).eval()
    _, _, prev = batch(fused.dictionaries["zz"])
    expected, _ = language_model.extract_features(prev)
    actual = fused.decoders["zz"].language(prev)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)
    assert expected.abs().max() > 0.01


def test_sizes_are_those_of_the_translation_model(runs):
    """Stored in the checkpoint's configuration, with the sizes of the language model."""
    cfg = checkpoint_utils.load_checkpoint_to_cpu(str(runs.fused))["cfg"].model
    for option, value in SMALL.items():
        assert cfg[option[2:].replace("-", "_")] == value
    assert cfg.encoder_hidden_size == "xx=11,yy=6"
    assert cfg.encoder_type == "xx=gru,yy=convolution"
    assert cfg.language_model_size == "5,7"
    assert cfg.dropout == 0.0
    assert runs.build(*runs.start(), "--dropout", 0.3).decoders["zz"].dropout == 0.3


# ---------------------------------------------------------------- training


def moved(runs):
    """Names of the parameters of the fused model that are no longer what they were."""
    fused, language = parameters(runs.fused), parameters(runs.lm)
    before = parameters(runs.translation)
    prefix = "decoders.zz.language."
    for name, value in language.items():
        before[name.replace("decoder.language.", prefix)] = value
    start = runs.build(*runs.start()).state_dict()
    assert set(start) == set(fused)
    return {name for name in fused if not torch.equal(fused[name], before.get(name, start[name]))}


def test_only_the_output_and_the_controller_are_trained(runs):
    """Gulcehre et al., Sec. 4.2; all else is what it was to the last bit."""
    trained = {
        f"decoders.zz.{name}"
        for name in (
            *("readout_state.weight", "readout_state.bias", "readout_embedding.weight"),
            *("readout_context.weight", "output.weight", "output.bias"),
            *("readout_language.weight", "readout_gate.bias"),
        )
    }
    # v_g starts at random, so that it always differs from that of another start
    changed = moved(runs) - {"decoders.zz.readout_gate.weight"}
    assert changed == trained


def test_training_moves_what_is_not_frozen(runs, tmp_path, monkeypatch):
    """The comparison above sees a group that is not frozen: here the attention."""
    real = DeepFusionModel.parameter_groups

    def twin(self):
        groups = real(self)
        return {**groups, "output": groups["output"] + groups["shared"]}

    monkeypatch.setattr(DeepFusionModel, "parameter_groups", twin)
    few = ["--lang-pairs", PAIRS, *QUICK, "--max-update", 2, "--disable-validation"]
    train(runs.data, *TASK, *few, *runs.start(), "--save-dir", tmp_path)
    fused, before = parameters(tmp_path / "checkpoint_last.pt"), parameters(runs.translation)
    assert not torch.equal(fused["attention.energy"], before["attention.energy"])


def test_a_run_resumes(runs, tmp_path):
    """From its own checkpoint, not from the two models; frozen parameters stay what they were."""
    shutil.copy(runs.fused, tmp_path)
    more = ["--lang-pairs", PAIRS, *QUICK, "--max-update", 15, "--disable-validation"]
    log = train(runs.data, *TASK, *more, *runs.start(), "--save-dir", tmp_path)
    assert [entry["train_num_updates"] for entry in log if "train_num_updates" in entry] == [15]
    assert log[-1]["train_loss"] < 4.14
    after, before = parameters(tmp_path / "checkpoint_last.pt"), parameters(runs.fused)
    differing = {name for name in after if not torch.equal(after[name], before[name])}
    assert len(differing) == 9


def test_gradients_of_frozen_parameters_are_not_computed(runs):
    model = runs.build(*runs.start()).train()
    model(*batch(model.dictionaries["zz"]))[0].sum().backward()
    with_gradient = {name for name, p in model.named_parameters() if p.grad is not None}
    assert with_gradient == {name for name, p in model.named_parameters() if p.requires_grad}
    assert len(with_gradient) == 9


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "flags, message",
    [
        ([], "--translation-model and --language-model: not given"),
        (["--translation-model", "x.pt"], "--language-model: not given"),
        (["--language-model", "x.pt"], "--translation-model: not given"),
    ],
)
def test_both_models_have_to_be_named(runs, flags, message):
    with pytest.raises(ValueError, match=message):
        runs.build("--arch", "deep_fusion_gru", *flags)


def test_missing_and_other_checkpoints(runs, tmp_path):
    torn = tmp_path / "torn.pt"
    torn.write_bytes(runs.lm.read_bytes()[:1000])
    with pytest.raises(ValueError, match="^--language-model .*torn.pt: cannot be read as a check"):
        runs.build(*runs.start(language=torn))
    with pytest.raises(ValueError, match="--translation-model no/such.pt: there is no such file"):
        runs.build(*runs.start(translation="no/such.pt"))
    with pytest.raises(ValueError, match="--language-model no/such.pt: there is no such file"):
        runs.build(*runs.start(language="no/such.pt"))
    with pytest.raises(ValueError, match="--translation-model .* holds a gru_lm; it must be a mul"):
        runs.build(*runs.start(translation=runs.lm))
    with pytest.raises(ValueError, match="--language-model .* holds a deep_fusion_gru; it must be"):
        runs.build(*runs.start(language=runs.fused))


def test_a_language_model_that_reads_another_first_symbol(runs, tmp_path):
    """Its states are those behind <s> and </s>, a translation begins with </s> alone."""
    state = torch.load(runs.lm, weights_only=True)
    state["cfg"]["task"]["add_bos_token"] = True
    torch.save(state, tmp_path / "lm.pt")
    with pytest.raises(ValueError, match="^--language-model .*: was trained with --add-bos-token"):
        runs.build(*runs.start(language=tmp_path / "lm.pt"))


def test_dictionaries_of_other_sizes(runs, tmp_path):
    data = write_dictionaries(tmp_path)
    with pytest.raises(ValueError, match=r"--translation-model .* words, dict.xx.txt .* has 13"):
        runs.build(*runs.start(), data=data)


def copied(runs, folder):
    """The run's dictionaries in another folder."""
    for lang in ("xx", "yy", "zz"):
        shutil.copy(runs.data / f"dict.{lang}.txt", folder)
    return folder


def test_dictionaries_with_other_words(runs, tmp_path):
    data = copied(runs, tmp_path)
    runs.build(*runs.start(), data=data)
    lines = (data / "dict.zz.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    lines[2], lines[5] = lines[5], lines[2]
    (data / "dict.zz.txt").write_text("".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=r"dict.zz.txt, whose word 6 is '\w+'; in dict.zz.txt"):
        runs.build(*runs.start(), data=data)


def test_dictionary_of_the_language_model(runs, tmp_path):
    """Compared with dict.txt of its own data as long as that is there."""
    data = copied(runs, tmp_path)
    lines = (data / "dict.zz.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    dictionary = deep_fusion.Dictionary.load(str(data / "dict.zz.txt"))
    stored = read_checkpoint(LANGUAGE, str(runs.lm), "gru_lm")

    def check(stored):
        deep_fusion.check_dictionary(stored, "decoder.language", "dict.txt", "zz", dictionary)

    check(stored)
    (data / "dict.txt").write_text("".join(lines[::-1]), encoding="utf-8")
    elsewhere = stored._replace(task={"data": str(data)})
    # it holds other words by now
    check(elsewhere)
    with pytest.raises(ValueError, match=r"--language-model .*dict.txt, whose word 4 is '\w+'"):
        check(elsewhere._replace(digests={}))
    (data / "dict.txt").unlink()
    # the folder is gone: the digest tells, where there is one
    check(elsewhere)
    dictionary.symbols[4], dictionary.symbols[5] = dictionary.symbols[5], dictionary.symbols[4]
    with pytest.raises(ValueError, match=r"--language-model .* another dictionary of zz"):
        check(elsewhere)
    check(elsewhere._replace(digests={}))


def test_pairs_that_do_not_fit(runs):
    with pytest.raises(ValueError, match="--lang-pairs xx-zz,xx-yy: .* targets zz, yy"):
        runs.build(*runs.start(), pairs="xx-zz,xx-yy")
    with pytest.raises(ValueError, match="has no encoder of zz; it translates xx-zz,yy-zz"):
        runs.build(*runs.start(), pairs="zz-xx")
    with pytest.raises(ValueError, match="has no decoder of yy; it translates xx-zz,yy-zz"):
        runs.build(*runs.start(), pairs="xx-yy")


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--embed-dim", 11], "has --embed-dim 10, the run's is 11; leave the option out"),
        (["--encoder-hidden-size", "xx=9"], "--encoder-hidden-size is xx=9; leave the option out"),
        (["--encoder-type", "yy=gru"], "--encoder-type is yy=gru; leave the option out"),
        (["--language-model-size", "5,7"], "--language-model-size is what a run writes .* '5,7'"),
    ],
)
def test_sizes_that_do_not_fit(runs, flags, message):
    with pytest.raises(ValueError, match=message):
        runs.build(*runs.start(), *flags)


def test_equal_sizes_may_be_given(runs):
    """They change nothing: the sizes and values are those of the checkpoints."""
    repeated = runs.build(*runs.start(), *SIZES, "--encoder-hidden-size", "xx=11").state_dict()
    expected = runs.build(*runs.start()).state_dict()
    assert [*repeated] == [*expected]
    assert [value.shape for value in repeated.values()] == [v.shape for v in expected.values()]
    trained = loaded(runs.translation).state_dict()
    shared = trained.keys() & repeated.keys()
    assert len(shared) > 10 and all(torch.equal(repeated[n], trained[n]) for n in shared)


def test_sizes_without_any_weights_are_no_model(runs):
    """With every size on the command line the model builds as from a checkpoint, but is empty."""
    sizes = [*SIZES, "--dropout", 0, "--language-model-size", "5,7"]
    model = runs.build(*runs.start(), *sizes)
    with pytest.raises(ValueError, match="leave it out and give --translation-model and --lang"):
        model(*batch(model.dictionaries["zz"]))


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--embed-dim", 0], "--embed-dim 0: must be at least 1"),
        (["--hidden-size", -1], "--hidden-size -1: must be at least 1"),
        (["--dropout", 1.0], r"--dropout 1.0: must be in \[0, 1\)"),
        (["--share-decoder-input-output-embed"], "--embed-dim 5 and --hidden-size 7 must be equal"),
        (
            ["--share-decoder-input-output-embed", "--embed-dim", 7, "--output-dictionary-size", 9],
            "dictionary has .* entries, --output-dictionary-size leaves 9",
        ),
    ],
)
def test_language_model_of_impossible_sizes(runs, flags, message):
    cfg = configuration(options.get_training_parser(), [runs.lm_data, *LM, *flags])
    with pytest.raises(ValueError, match=message):
        tasks.setup_task(cfg.task).build_model(cfg.model)


def test_shared_matrix_and_tiny_architecture(runs):
    words = [runs.lm_data, "--task", "language_modeling", "--arch"]
    for flags, shared in ((["gru_lm_tiny"], False), (["gru_lm", "--embed-dim", 7], True)):
        flags += ["--share-decoder-input-output-embed", "--hidden-size", 7] if shared else []
        cfg = configuration(options.get_training_parser(), [*words, *flags])
        decoder = tasks.setup_task(cfg.task).build_model(cfg.model).decoder
        assert (decoder.output.weight is decoder.language.embedding.weight) == shared
        assert decoder.output.in_features == (7 if shared else 96)
        assert decoder.max_positions() == 1024


# ---------------------------------------------------------------- all commands


def number_after(text, label):
    return float(text.split(label)[1].split()[0].strip(",|"))


@pytest.mark.slow
def test_from_text_to_translations(toy_corpus, run, user_dir, tmp_path):
    """Fresh processes; the two models are deleted before the fused one translates.

    fairseq-eval-lm agrees with the perplexity of the last validation, and the fused model is no
    longer the translation model.
    """
    lm_data = preprocess_language(run, toy_corpus, toy_corpus.two, tmp_path / "text", "yy")
    common = ["--user-dir", user_dir, "--cpu", "--num-workers", 0]
    quick = [*common, *QUICK, "--log-format", "json", "--max-update", 20, "--max-epoch", 5]
    log = run("fairseq-train", lm_data, *LM, *quick, "--dropout", 0.1, "--save-dir", tmp_path / "l")
    language = tmp_path / "l" / "checkpoint_best.pt"
    scored = run(
        *["fairseq-eval-lm", lm_data, "--path", language, "--gen-subset", "valid", *common],
        *["--task", "language_modeling", "--sample-break-mode", "eos", "--max-tokens", 500],
    )
    losses = [entry["valid_loss"] for entry in records(json_lines(log)) if "valid_loss" in entry]
    assert number_after(scored, "Loss (base 2): ") == pytest.approx(min(losses), abs=2e-3)
    assert losses[-1] < losses[0] - 0.5
    shared = [*TASK, *quick, "--lang-pairs", "xx-yy"]
    single = ["--arch", "multiway_gru", *SIZES, "--save-dir", tmp_path / "single"]
    run("fairseq-train", toy_corpus.two, *shared, *single)
    start = ["--arch", "deep_fusion_gru", "--language-model", language]
    start += ["--translation-model", tmp_path / "single" / "checkpoint_last.pt"]
    run("fairseq-train", toy_corpus.two, *shared, *start, "--save-dir", tmp_path / "fused")
    translate = [toy_corpus.two, *TASK, "-s", "xx", "-t", "yy", "--max-tokens", 500]
    translate += ["--gen-subset", "valid", "--path"]
    before = hypotheses(generate(*translate, tmp_path / "single" / "checkpoint_last.pt"))
    shutil.rmtree(tmp_path / "single")
    shutil.rmtree(tmp_path / "l")
    fused = tmp_path / "fused" / "checkpoint_last.pt"
    after = hypotheses(run("fairseq-generate", *translate, fused, *common))
    assert len(after) == toy_corpus.sizes["valid"]
    assert after != before


def json_lines(log):
    """The records in the output of a process, whose lines begin with the time."""
    return [line[line.index('{"') :] for line in log.splitlines() if '{"' in line]


def test_the_language_model_writes_texts(runs):
    words = [runs.lm_data, *LM[:2], "--sample-break-mode", "eos", "--path", runs.lm, "--beam", 2]
    texts = generate(*words, "--gen-subset", "valid", "--batch-size", 8, "--max-len-b", 8)
    assert len(hypotheses(texts)) == 24
