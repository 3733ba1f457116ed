"""``load``: what there is not is named, and what does not belong together is refused."""

import concurrent.futures
import re
import shutil

import numpy as np
import pytest
import torch
from common import inprocess
from common.pieces import learn_pieces
from fairseq.data import encoders
from inference.stock import ALL
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.compat.checkpoints.refusals import check_finite
from fairseq_ext.inference.loading import check_target, undisturbed
from fairseq_ext.inference.packing import pack

LINES = ["an1 av2 an3", "an4 av5 an6 at1", "unknown av1 an8 at2", ""] * 3


@pytest.mark.parametrize("checkpoint", [None, 5, ["model.pt", None]])
def test_what_is_no_path(checkpoint):
    with pytest.raises(TypeError, match="checkpoint (None|5): allowed: a path, or a list"):
        fairseq_ext.load(checkpoint)


def test_devices(monkeypatch):
    check_target("cpu", "float32")
    with pytest.raises(ValueError, match="device 'gpu': allowed: cpu, cuda, cuda:N"):
        check_target("gpu", "float32")
    with pytest.raises(ValueError, match="dtype 'float64': allowed: float32, bfloat16, float16"):
        check_target("cpu", "float64")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device in ("cuda", "cuda:3"):
        with pytest.raises(ValueError, match=f"'{device}': torch sees no CUDA device; allowed: c"):
            check_target(device, "float32")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    check_target("cuda:1", "float32")
    with pytest.raises(ValueError, match="'cuda:2': torch sees 2 CUDA devices; allowed: cuda:0 t"):
        check_target("cuda:2", "float32")
    for other in ("mps", "meta", "xla"):
        with pytest.raises(ValueError, match=f"device '{other}': allowed: cpu, cuda, cuda:N"):
            check_target(other, "float32")


@pytest.fixture(scope="module")
def other_words(data, tmp_path_factory):
    """A model of the same size for a dictionary of other words, and its data."""
    folder = tmp_path_factory.mktemp("other")
    for path in data["two"].iterdir():
        shutil.copy(path, folder)
    for language in ("xx", "yy"):
        path = folder / f"dict.{language}.txt"
        path.write_text("\n".join(path.read_text().splitlines()[::-1]) + "\n")
    words = SYSTEMS["transformer"].words(folder, "--max-update", 1, "--batch-size", 8)
    words += ["--disable-validation", "--no-epoch-checkpoints", "--save-dir", folder / "run"]
    inprocess.train(*words)
    return folder / "run" / "checkpoint_last.pt", folder


def test_languages_of_stock_tasks_may_have_a_dash(data, checkpoint_of, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(data["two"] / "dict.xx.txt", folder / "dict.xx.txt")
    shutil.copy(data["two"] / "dict.yy.txt", folder / "dict.pt-BR.txt")
    state = torch.load(checkpoint_of("transformer"), weights_only=True)
    state["cfg"]["task"].update(target_lang="pt-BR")
    names = state["extra_state"]["dictionaries"]
    names["pt-BR"] = names.pop("yy")
    torch.save(state, tmp_path / "c.pt")
    expected = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    model = fairseq_ext.load(tmp_path / "c.pt", folder, "xx-pt-BR")
    assert model.direction == "xx-pt-BR" and model.sources == ("xx",)
    model = fairseq_ext.load(pack([tmp_path / "c.pt"], folder, tmp_path / "packed"))
    assert [t.text for t in model.translate(LINES)] == [t.text for t in expected.translate(LINES)]
    assert model.score(["an1"], ["un1"])[0].score == expected.score(["an1"], ["un1"])[0].score
    assert "  - pt-BR" not in (tmp_path / "packed" / "README.md").read_text()


def test_subwords_of_another_training_are_not_used(data, checkpoint_of, tmp_path, toy_corpus):
    """Such a file, in a folder above, would make every word unknown."""
    shutil.copytree(data["two"], tmp_path / "word-bin")
    (tmp_path / "run").mkdir()
    shutil.copy(checkpoint_of("transformer"), tmp_path / "run" / "c.pt")
    expected = fairseq_ext.load(tmp_path / "run" / "c.pt", tmp_path / "word-bin").translate(LINES)
    learn_pieces(toy_corpus.text / "train.xx", tmp_path / "subwords", 30)
    model = fairseq_ext.load(tmp_path / "run" / "c.pt", tmp_path / "word-bin")
    assert model.loaded.subwords.kind is None
    assert [t.text for t in model.translate(LINES)] == [t.text for t in expected]
    # but what is said is done
    named = {"subwords": tmp_path / "subwords.model"}
    model = fairseq_ext.load(tmp_path / "run" / "c.pt", tmp_path / "word-bin", **named)
    assert model.loaded.subwords.kind == "sentencepiece"


def test_checkpoints_from_before_fairseq_0_10(data, checkpoint_of, tmp_path):
    """They have one Namespace of all options."""
    state = torch.load(checkpoint_of("transformer"), weights_only=True)
    state["args"], state["cfg"] = state["cfg"]["model"], None
    torch.save(state, tmp_path / "old.pt")
    translations, expected = (
        fairseq_ext.load(path, data["two"]).translate(LINES)
        for path in (tmp_path / "old.pt", checkpoint_of("transformer"))
    )
    assert [t.text for t in translations] == [t.text for t in expected]


def test_an_ensemble_has_the_same_words(data, checkpoint_of, other_words):
    """Of the same size: nothing but the words differs."""
    checkpoint, folder = other_words
    with pytest.raises(ValueError, match="dict"):
        fairseq_ext.load([checkpoint_of("transformer"), checkpoint], data["two"])
    with pytest.raises(ValueError, match="dict"):
        fairseq_ext.load(checkpoint, data["two"])
    assert fairseq_ext.load([checkpoint, checkpoint], folder).translate(["an1"], max_len_b=3)


def test_a_mask_of_infinities_is_no_divergence():
    model = torch.nn.Linear(2, 2)
    model.mask = torch.nn.Parameter(torch.tensor([0.0, -torch.inf]), requires_grad=False)
    check_finite("a.pt", model)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_has_diverged_is_named(value, data, checkpoint_of, tmp_path):
    state, path = torch.load(checkpoint_of("transformer"), weights_only=True), tmp_path / "bad.pt"
    state["model"]["encoder.layers.0.fc1.weight"][1, 2] = value
    torch.save(state, path)
    message = f"{path}: encoder.layers.0.fc1.weight holds NaN or an infinity"
    with pytest.raises(ValueError, match=message):
        fairseq_ext.load(path, data["two"])
    with pytest.raises(ValueError, match=message):
        inprocess.generate(*SYSTEMS["transformer"].inference_words(data["two"], path))


@pytest.mark.parametrize(
    "option, error, message",
    [
        (dict(bpe="nowhere"), ValueError, "bpe 'nowhere': the model has no sub-words; allowed"),
        (dict(bpe="sentencepiece"), ValueError, "bpe 'sentencepiece': the model has no sub-w"),
        (dict(tokenizer="nowhere"), ValueError, "tokenizer 'nowhere': allowed: "),
        (dict(direction=3), TypeError, "direction 3: allowed: a str"),
        (dict(device=None), ValueError, "device None: allowed: cpu, cuda"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(option, error, message, data, checkpoint_of):
    with pytest.raises(error, match=message):
        fairseq_ext.load(checkpoint_of("dual_transformer"), data["two"], **option)


def test_a_task_of_another_plugin_is_named(data, checkpoint_of, tmp_path):
    state, path = torch.load(checkpoint_of("transformer"), weights_only=True), tmp_path / "its.pt"
    state["cfg"]["task"]["_name"] = "nowhere"
    torch.save(state, path)
    with pytest.raises(ValueError, match=f"{path}: its task 'nowhere' is not registered"):
        fairseq_ext.load(path, data["two"])


@pytest.mark.parametrize("name", ["transformer", "twin_lstm", "routed_gru"])
def test_bfloat16_is_near(name, data, checkpoint_of):
    single, half = (
        fairseq_ext.load(checkpoint_of(name), data[SYSTEMS[name].data], dtype=dtype)
        for dtype in ("float32", "bfloat16")
    )
    assert half.loaded.dtype == torch.bfloat16
    targets = ["un1 uv2"] * len(LINES)
    scores = [[s.score for s in model.score(LINES, targets)] for model in (single, half)]
    assert np.allclose(*scores, rtol=0.03, atol=0.1)
    for result in half.translate(LINES[:3], max_len_b=5):
        assert result.hypotheses[0].attention.dtype == np.float32


@pytest.mark.slow
def test_eight_threads_get_what_one_gets(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("dual_transformer"), data["two"])
    jobs = []
    for number in range(24):
        beam, other = 1 + number % 4, number % 3 == 0
        jobs.append((beam, other, ["un1 uv2", ""] if other else LINES[number % 3 :]))

    def work(job):
        beam, other, lines = job
        used = model.toward("yy-xx") if other else model
        results = used.translate(lines, beam=beam, max_len_b=6, batch=1 + beam)
        scores = used.score(lines, [result.text for result in results])
        return [r.text for r in results], [round(s.score, 4) for s in scores]

    expected = [work(job) for job in jobs]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, jobs)) == expected


def test_iterators_are_read_once_and_in_order(data, checkpoint_of, capsys):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    results = model.translate((line for line in LINES), max_len_b=4, progress=True)
    assert [result.source for result in results] == LINES
    assert "sentences" in capsys.readouterr().err
    assert [r.text for r in results] == [r.text for r in model.translate(LINES, max_len_b=4)]


def test_texts_that_are_cut_already_are_not_cut_again(data, checkpoint_of):
    """Neither into sub-words nor into words: back-translate reads and writes such texts."""
    path = checkpoint_of("transformer", "--tokenizer", "space")
    folder = data[ALL["transformer"].data]
    assert fairseq_ext.load(path, folder).loaded.tokenizer == {"_name": "space"}
    assert fairseq_ext.load(path, folder, subwords="none").loaded.tokenizer is None
    named = fairseq_ext.load(path, folder, subwords="none", tokenizer="space")
    assert named.loaded.tokenizer == {"_name": "space"}


def test_options_of_a_tokenizer_are_those_of_the_training(
    data, checkpoint_of, tmp_path, monkeypatch
):
    class Moses:
        def __init__(self, cfg):
            self.cfg = cfg

        def encode(self, text):
            return text

        decode = encode

    path = checkpoint_of("transformer", "--tokenizer", "moses", "--moses-no-escape")
    monkeypatch.setitem(encoders.TOKENIZER_REGISTRY, "moses", Moses)
    trained = fairseq_ext.load(path, data["two"])
    packed = fairseq_ext.load(pack([path], data["two"], tmp_path / "packed"))
    for model in (trained, packed):
        cfg = model.coders().tokenizer.cfg
        assert (cfg.source_lang, cfg.target_lang, cfg.moses_no_escape) == ("xx", "yy", True)
    other = fairseq_ext.load(path, data["two"], tokenizer="space")
    assert other.loaded.tokenizer == {"_name": "space"}


@pytest.mark.parametrize("name, folder", [("gru_lm", "language"), ("twin_lstm_lm", "language")])
def test_a_tokenizer_that_would_cut_nothing_is_refused(name, folder, data, checkpoint_of):
    with pytest.raises(ValueError, match="tokenizer 'space': .*language_model has no language"):
        fairseq_ext.load(checkpoint_of(name), data[folder], tokenizer="space")


def test_no_gpu_is_asked_for_its_random_numbers(monkeypatch):
    """A model on the CPU takes no memory of the GPUs that there are."""

    def asked(*words, **more):
        raise AssertionError("a GPU was asked for")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_rng_state", asked)
    before = torch.get_rng_state()
    with undisturbed():
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("direction", ["de-yy", "xx-de", "xx+de-yy"])
def test_a_direction_of_other_languages_names_those_of_the_model(direction, data, checkpoint_of):
    system = SYSTEMS["multiway_gru"]
    message = f"direction '{re.escape(direction)}': no de in .*xx-yy.*, which the model was trained"
    with pytest.raises(ValueError, match=message):
        fairseq_ext.load(checkpoint_of("multiway_gru"), data[system.data], direction)


def test_the_direction_of_a_training_that_was_not_given_it(data, checkpoint_of, tmp_path):
    """Without -s and -t, fairseq takes it from the names in the data folder."""
    state = torch.load(checkpoint_of("transformer"), weights_only=True)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    torch.save(state, tmp_path / "model.pt")
    assert fairseq_ext.load(tmp_path / "model.pt", data["two"], "xx-yy").translate(["an1"])
    with pytest.raises(ValueError, match="'yy-xx': the model has one; allowed: xx-yy$"):
        fairseq_ext.load(tmp_path / "model.pt", data["two"], "yy-xx")


def test_a_model_that_took_its_languages_from_its_data_folder(checkpoint_of, data, tmp_path):
    """Where they are not in the checkpoint, and no data beside the dictionaries, they are named."""
    folder = data[ALL["transformer"].data]
    state = torch.load(checkpoint_of("transformer"), weights_only=True)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    torch.save(state, tmp_path / "recorded.pt")
    del state["extra_state"]["dictionaries"]  # of stock fairseq
    torch.save(state, tmp_path / "stock.pt")
    (tmp_path / "dictionaries").mkdir()
    for lang in ("xx", "yy"):
        shutil.copy(folder / f"dict.{lang}.txt", tmp_path / "dictionaries")
    named = fairseq_ext.load(checkpoint_of("transformer"), folder)
    expected = [entry.text for entry in named.translate(["an1 av2 an3"])]
    for name, place, direction in (
        ("recorded", "dictionaries", None),
        ("recorded", "dictionaries", "xx-yy"),
        ("stock", "dictionaries", "xx-yy"),
        ("stock", folder, None),
    ):
        model = fairseq_ext.load(tmp_path / f"{name}.pt", tmp_path / place, direction)
        assert model.direction == "xx-yy"
        assert [entry.text for entry in model.translate(["an1 av2 an3"])] == expected
    for name, place in (("recorded", "dictionaries"), ("stock", folder)):
        with pytest.raises(ValueError, match="direction 'yy-xx': the model has one; allowed: xx-y"):
            fairseq_ext.load(tmp_path / f"{name}.pt", tmp_path / place, "yy-xx")
    for name, place in (("recorded", "dictionaries"), ("stock", folder)):
        packed = pack([tmp_path / f"{name}.pt"], tmp_path / place, tmp_path / f"packed {name}")
        model = fairseq_ext.load(packed)
        assert [entry.text for entry in model.translate(["an1 av2 an3"])] == expected
