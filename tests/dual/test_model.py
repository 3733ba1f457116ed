"""The fairseq model: shared properties, parameters, directions, and errors of bad input."""

import functools

import pytest
import torch
from common.inprocess import configuration
from fairseq import options, tasks
from streams.directions import CHECKS, beam_reorder, save_and_load, sees_everything
from toy_sentences import END, PAD

from properties import check_no_gradient, collate, random_sentences

THREE = ("--lang-pairs", "xx-yy,xx-zz")


@pytest.fixture(params=["post-norm", "pre-norm"])
def norm(request):
    return ["--normalize-before"] if request.param == "pre-norm" else []


@pytest.fixture(scope="module")
def built(dual_task):
    """Function (options...) -> (task, model), built once for each set of options."""
    return functools.lru_cache(maxsize=None)(dual_task)


@pytest.fixture
def make_direction(built, norm):
    """Function (pair) -> direction."""

    def make(pair="xx-yy"):
        return built("--share-all-embeddings", *norm)[1].direction(pair)

    return make


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("pair", ["xx-yy", "yy-xx"])
def test_direction(make_direction, pair, check):
    check(make_direction(pair))


def test_encoding_role_sees_the_whole_sentence(make_direction):
    sees_everything(make_direction())


@pytest.mark.parametrize("sentences", [[4], [5, 2, 3]])
@pytest.mark.parametrize("beams", [1, 4])
def test_beams_of_other_sizes(make_direction, sentences, beams):
    beam_reorder(make_direction(), sentences, beams)


def test_save_and_load(make_direction):
    save_and_load(make_direction())


def rows(lengths, words, seed):
    return collate(random_sentences(lengths, words, END, seed=seed), PAD)


def test_directions_share_their_parameters(built):
    _, model = built("--share-all-embeddings")
    primal, dual = model.direction("xx-yy"), model.direction("yy-xx")
    ids = {id(parameter) for parameter in model.parameters()}
    assert {id(parameter) for parameter in primal.parameters()} == ids
    assert {id(parameter) for parameter in dual.parameters()} == ids
    assert primal.encoder.module is dual.decoder.module


def test_direction_of_an_unknown_language_is_refused(built):
    _, model = built()
    with pytest.raises(ValueError, match="'xx-de'.*components for xx, yy, not for 'de'"):
        model.direction("xx-de")


def test_forward_takes_the_pair(built):
    task, model = built("--share-all-embeddings")
    words = len(task.dictionaries["xx"])
    source, prev = rows([4, 2], words, seed=1), rows([3, 3], words, seed=2)
    model.eval()
    with torch.no_grad():
        for pair in ("xx-yy", "yy-xx"):
            ours = model(source, None, prev, pair=pair)[0]
            assert torch.equal(ours, model.direction(pair)(source, None, prev)[0])
        other = model(source, None, prev, pair="yy-xx")[0]
    assert (ours - model(source, None, prev, pair="xx-yy")[0]).abs().max() > 1e-3
    assert torch.equal(ours, other)


def test_separate_embeddings_where_not_shared(built):
    _, shared = built("--share-all-embeddings")
    _, separate = built()
    components = shared.components
    assert components["xx"].embedding is components["yy"].embedding
    components = separate.components
    assert components["xx"].embedding is not components["yy"].embedding


def closed_formula(words, embeddings, width, inner, layers, languages):
    """Two attentions (4 maps each), two maps of the feed-forward layer, three norms a block."""
    attention = 4 * (width * width + width)
    feed_forward = 2 * width * inner + inner + width
    block = 2 * attention + feed_forward + 3 * 2 * width
    return embeddings * words * width + languages * layers * block


@pytest.mark.parametrize("languages, pairs", [(2, ("-s", "xx", "-t", "yy")), (3, THREE)])
@pytest.mark.parametrize("shared", [True, False])
def test_number_of_parameters_is_the_closed_formula(
    dual_task, toy_corpus, languages, pairs, shared
):
    flags = ["--share-all-embeddings"] if shared else []
    task, model = dual_task(*flags, data=toy_corpus.three, languages=pairs)
    words = len(task.dictionaries["xx"])
    expected = closed_formula(words, 1 if shared else languages, 12, 20, 2, languages)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def big_dictionary_model(arch, task_name, flags, folder):
    """The arch on a joint vocabulary of 30,000 entries, on the meta device."""
    folder.mkdir(exist_ok=True)
    lines = "".join(f"w{number} 1\n" for number in range(30000 - 4))
    for lang in ("de", "en"):
        (folder / f"dict.{lang}.txt").write_text(lines, encoding="utf-8")
    arguments = [folder, "--task", task_name, "-s", "de", "-t", "en", "--arch", arch, *flags]
    cfg = configuration(options.get_training_parser(), [*arguments, "--share-all-embeddings"])
    with torch.device("meta"):
        return tasks.setup_task(cfg.task).build_model(cfg.model)


def test_sizes_of_the_paper(tmp_path):
    """Sec. 3: small setting, joint vocabulary of about 30k: 20M against 38M of two models."""
    dual = big_dictionary_model(
        "dual_transformer_iwslt_de_en", "dual_translation", [], tmp_path / "bin"
    )
    sizes = ["--encoder-embed-dim", 256, "--encoder-ffn-embed-dim", 1024]
    sizes += ["--decoder-embed-dim", 256, "--decoder-ffn-embed-dim", 1024]
    sizes += ["--encoder-attention-heads", 4, "--decoder-attention-heads", 4]
    stock = big_dictionary_model("transformer", "translation", sizes, tmp_path / "bin")
    ours = sum(parameter.numel() for parameter in dual.parameters())
    theirs = 2 * sum(parameter.numel() for parameter in stock.parameters())
    assert ours == closed_formula(30000, 1, 256, 1024, 6, 2)
    assert 19e6 < ours < 21e6
    assert 37e6 < theirs < 39e6
    assert 1 - ours / theirs == pytest.approx(0.47, abs=0.02)


def test_three_languages_have_three_components(dual_task, toy_corpus):
    task, model = dual_task("--share-all-embeddings", data=toy_corpus.three, languages=THREE)
    assert sorted(model.components) == ["xx", "yy", "zz"]
    assert task.pairs == ["xx-yy", "yy-xx", "xx-zz", "zz-xx"]
    words = len(task.dictionaries["xx"])
    source, prev = rows([4], words, seed=1), rows([3], words, seed=2)
    model.train()
    scores = model(source, None, prev, pair="zz-xx")[0]
    check_no_gradient(scores.sum(), model.components["yy"].blocks.named_parameters())
    assert model.direction("yy-zz")(source, None, prev)[0].shape == scores.shape


@pytest.mark.parametrize(
    "flags, languages, message",
    [
        ([], ("-s", "xx"), "-s xx -t None: give both languages"),
        ([], ("-t", "yy"), "-s None -t yy: give both languages"),
        ([], ("-s", "xx", "-t", "qq"), r"dict\.qq\.txt: no dictionary for language 'qq'"),
        ([], ("-s", "xx", "-t", "xx"), "-s xx -t xx"),
        ([], ("-s", "xx-zz", "-t", "yy"), "-s xx-zz -t yy"),
        ([], ("--lang-pairs", "xxyy"), "--lang-pairs 'xxyy'"),
        ([], ("--lang-pairs", "xx-yy", "-s", "xx", "-t", "yy"), "training takes one or the other"),
        (["--attention-heads", 5], ("-s", "xx", "-t", "yy"), "--attention-heads 5: must divide"),
        (["--dropout", 1.5], ("-s", "xx", "-t", "yy"), "--dropout 1.5"),
        (["--left-pad-target"], ("-s", "xx", "-t", "yy"), "--left-pad-target"),
        (["--schedule", "main+aux"], ("-s", "xx", "-t", "yy"), "--main-pair None: must be one of"),
        (
            ["--schedule", "temperature", "--schedule-temperature", 0],
            ("-s", "xx", "-t", "yy"),
            "--schedule-temperature 0",
        ),
    ],
)
def test_bad_options_name_themselves(dual_task, flags, languages, message):
    with pytest.raises(ValueError, match=message):
        dual_task(*flags, languages=languages)


def test_missing_data_folder_is_named(dual_task, tmp_path):
    with pytest.raises(ValueError, match="nowhere.*not a folder made by fairseq-preprocess"):
        dual_task(data=tmp_path / "nowhere")


def test_missing_binarised_pair_is_named(dual_task, toy_corpus):
    task, _ = dual_task(data=toy_corpus.three, languages=("--lang-pairs", "xx-yy,yy-zz"))
    with pytest.raises(FileNotFoundError, match="no nosuch.xx-yy or nosuch.yy-xx"):
        task.load_dataset("nosuch")


def test_shared_embeddings_need_one_dictionary(dual_task, toy_corpus, tmp_path):
    for lang, lines in (("xx", "a 1\nb 1\n"), ("yy", "a 1\nb 1\nc 1\n")):
        (tmp_path / f"dict.{lang}.txt").write_text(lines, encoding="utf-8")
    with pytest.raises(ValueError, match=r"--share-all-embeddings: .*xx \(6 .*yy \(7 "):
        dual_task("--share-all-embeddings", data=tmp_path)
