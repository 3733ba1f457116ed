"""noisychannel (fairseq_ext/compat/examples/noisy_reranking.py)."""

import importlib
import logging
import math
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import fairseq
import pytest
import torch
from common import inprocess
from fairseq_cli import eval_lm

EXAMPLE = Path(fairseq.__file__).parent / "examples" / "noisychannel"
LANGUAGE_MODEL = ["--arch", "transformer_lm", "--tokens-per-sample", 256]


@pytest.fixture
def reranking():
    """Function: a module of the example; none stays imported."""
    present = set(sys.modules)

    def load(name):
        return importlib.import_module(f"examples.noisychannel.{name}")

    yield load
    for name in set(sys.modules) - present:
        if name.partition(".")[0] == "examples":
            del sys.modules[name]


def options(**changed):
    """Options of the reranking, as far as the tests need them."""
    names = ("nbest_list", "ref_translation", "language_model", "lm_name", "prefix_len")
    prefixes = ("target_prefix_frac", "source_prefix_frac")
    args = dict.fromkeys((*names, *prefixes))
    args.update(data_dir_name="D", num_rescore=2, gen_subset="test", gen_model_name="G")
    args.update(shard_id=0, num_shards=1, sampling=False)
    return SimpleNamespace(**{**args, **changed})


PRINTED = (
    "S-0\ta b\nT-0\tthe S-300 missile\nH-0\t-9.5e-05\tx S-1\nD-0\t-9.5e-05\tT-1 tanks\n"
    "P-0\t-0.5000 -0.2500\nS-1\tc\nT-1\tright\nH-1\t-1.25\t12 y\nD-1\t-1.25\tH-1 B\n"
    "P-1\t-1.0000 -inf\nGenerate test with beam=1: S-9 of 1\n"
)


def test_lines_of_translations_are_those_of_their_columns(reranking, tmp_path):
    (tmp_path / "out.txt").write_text(PRINTED, encoding="utf-8")
    sources, hypotheses, scores, targets, words = reranking("rerank_utils").reprocess(
        str(tmp_path / "out.txt")
    )
    assert sources == {0: "a b\n", 1: "c\n"}
    assert targets == {0: "the S-300 missile\n", 1: "right\n"}
    assert hypotheses == {0: ["x S-1\n"], 1: ["12 y\n"]}
    assert scores == {0: [-9.5e-05], 1: [-1.25]}
    assert words == {0: [[-0.5, -0.25]], 1: [[-1.0, -math.inf]]}


INTERACTIVE = "S-10\ta\nW-10\t0.1\tseconds\nH-10\t-0.5\tx\nD-10\t-0.5\tx\nP-10\t-0.5\n"


def test_lists_of_fairseq_interactive(reranking, tmp_path):
    path = tmp_path / "list.txt"
    path.write_text(INTERACTIVE, encoding="utf-8")
    output = reranking("rerank_utils").BitextOutputFromGen(str(path), "@@ ", nbest=True)
    assert (output.hypo, output.score) == ({10: ["x\n"]}, {10: [-0.5]})
    path.write_text("O\ta\nH\t-0.5\tx\nP\t-0.5\n", encoding="utf-8")  # those before 0.8
    output = reranking("rerank_utils").BitextOutputFromGen(str(path), "@@ ", nbest=True)
    assert (output.hypo, output.score) == ({0: ["x\n"]}, {0: [-0.5]})


def test_references_of_a_list(reranking, tmp_path, monkeypatch):
    utils, generate = reranking("rerank_utils"), reranking("rerank_generate")
    monkeypatch.setattr(utils, "__file__", str(tmp_path / "rerank_utils.py"))
    (tmp_path / "list.txt").write_text(INTERACTIVE, encoding="utf-8")
    (tmp_path / "references").write_text("t\n", encoding="utf-8")
    args = options(
        nbest_list=str(tmp_path / "list.txt"), ref_translation=str(tmp_path / "references")
    )
    with pytest.raises(AttributeError, match="score_dict_dir"):  # what stock reads next
        generate.gen_and_reprocess_nbest(args)
    output = utils.BitextOutputFromGen(args.nbest_list, "@@ ", nbest=True)
    assert output.no_bpe_target == {10: "t\n"}
    (tmp_path / "references").write_text("t\nu\n", encoding="utf-8")
    args.ref_translation = str(tmp_path / "references")
    with pytest.raises(ValueError, match="has 2 lines; allowed: 1"):
        generate.gen_and_reprocess_nbest(args)


def test_scores_of_language_models_are_binary_logarithms(reranking, tmp_path):
    path = tmp_path / "scores.txt"
    path.write_text("| loaded\n1 a@@ [-0.5]\tb [-1.0]\t</s> [-2.0]\n", encoding="utf-8")
    utils = reranking("rerank_utils")
    sentences, totals, words, plain, _ = utils.parse_lm(str(path), bpe_symbol="@@ ")
    assert (sentences, plain) == ({1: "a@@ b\n"}, {1: "ab\n"})
    assert totals == {1: pytest.approx(-3.5 / math.log(2))}
    assert words[1] == pytest.approx([-0.5 / math.log(2), -1 / math.log(2), -2 / math.log(2)])
    _, totals, _, _, lengths = utils.parse_lm(str(path), prefix_len=1, bpe_symbol="@@ ")
    assert (totals, lengths) == ({1: pytest.approx(-1.5 / math.log(2))}, {1: 2})


@pytest.mark.parametrize("bpe", ["no bpe", "shared"])
def test_language_models_score_the_hypotheses(reranking, tmp_path, monkeypatch, bpe):
    utils, texts = reranking("rerank_utils"), []
    monkeypatch.setattr(utils.preprocess, "main", lambda args: texts.append(args.trainpref))
    logger = logging.getLogger("fairseq_cli.eval_lm")
    monkeypatch.setattr(utils.options, "parse_args_and_arch", lambda *args: None)
    monkeypatch.setattr(eval_lm, "main", lambda cfg: logger.info("0 h [-1.0]\t</s> [-1.0]"))
    output = SimpleNamespace(source={0: "s@@ s\n"}, hypo={0: ["h@@ h\n"]}, target={0: "t\n"})
    for name in ("source", "hypo", "target"):
        setattr(output, f"no_bpe_{name}", utils.remove_bpe_dict(getattr(output, name), "@@ "))
    file = tmp_path / "scores"
    with redirect_stdout(StringIO()):
        utils.lm_scoring(
            *(str(tmp_path), bpe, output, str(tmp_path), "dict", "lm", "lm.pt", None, 8),
            *(str(file), "de", "en"),
        )
    assert Path(texts[0]).read_text(encoding="utf-8") == ("hh\n" if bpe == "no bpe" else "h@@ h\n")


def test_empty_scores_are_computed_again(reranking, tmp_path, monkeypatch):
    utils, lm = reranking("rerank_utils"), reranking("rerank_score_lm")
    monkeypatch.setattr(utils, "__file__", str(tmp_path / "rerank_utils.py"))
    args = options(language_model="lm.pt", lm_name="L")
    folder = Path(utils.get_directories("D", 2, "test", "G", 0, 1)[0])
    folder.mkdir(parents=True)
    scores = Path(utils.rescore_file_name(str(folder), None, "L", lm_file=True))
    for content, stays in (("0 a [-1.0]\t</s> [-0.5]\n", True), ("", False)):
        scores.write_text(content, encoding="utf-8")
        with pytest.raises(AttributeError, match="post_process"):  # what stock reads next
            lm.score_lm(args)
        assert scores.exists() == stays


def test_interrupted_lists_are_not_left(reranking, tmp_path):
    for name in ("rerank_utils", "rerank_generate", "rerank_score_bw"):
        path = tmp_path / name
        with pytest.raises(KeyboardInterrupt), reranking(name).open(str(path), "w") as file:
            file.write("S-0\ta\n")
            raise KeyboardInterrupt
        assert list(tmp_path.iterdir()) == []
    with reranking("rerank_utils").open(str(path), "w") as file:
        file.write("S-0\tä\n")
    with reranking("rerank_utils").open(str(path)) as file:
        assert file.read() == "S-0\tä\n"


def test_pieces_are_made_or_the_reranking_ends(reranking, tmp_path):
    utils, script = reranking("rerank_utils"), tmp_path / "apply_bpe.py"
    with pytest.raises(FileNotFoundError, match="pip install subword-nmt"):
        utils.subprocess.call(["python", str(script), "-c", "codes"], shell=False)
    script.write_text("import sys; sys.exit(sys.argv[1] == 'bad')", encoding="utf-8")
    assert utils.subprocess.call(["python", str(script), "good"], shell=False) == 0
    with pytest.raises(subprocess.CalledProcessError):
        utils.subprocess.call(["python", str(script), "bad"], shell=False)


# ---------------------------------------------------------------- all of it


@torch.no_grad()
def log_probability(model, target, *source):
    """log2 P of the words of `target` and of its end."""
    previous = torch.cat([target[-1:], target[:-1]])[None]
    lprobs = model.get_normalized_probs(model(*source, previous), log_probs=True)[0]
    return float(lprobs.gather(1, target[:, None]).sum()) / math.log(2)


def choices(texts, paths, weights, lenpen):
    """The best hypothesis of each sentence, by the weights of P(S|T), P(T|S) and P(T)."""
    from fairseq.checkpoint_utils import load_model_ensemble_and_task

    models = [load_model_ensemble_and_task([path])[0][0].eval() for path in paths]
    channel, direct, language = models
    words = direct.decoder.dictionary  # of all models

    def numbers(text):
        return words.encode_line(text, add_if_not_exist=False).long()

    best = {}
    for number, (source, hypotheses) in texts.items():
        scores = {}
        for text in hypotheses:
            x, y = numbers(source), numbers(text)
            parts = (
                log_probability(channel, x, y[None], torch.tensor([len(y)])),
                log_probability(direct, y, x[None], torch.tensor([len(x)])),
                log_probability(language, y),
            )
            score = sum(weight * part for weight, part in zip(weights, parts))
            scores[text] = score / len(text.split()) ** lenpen
        best[number] = max(scores, key=scores.get)
    return best


@pytest.mark.slow
def test_the_best_hypothesis_is_chosen(run, toy_corpus, tiny_training, tmp_path):
    two = toy_corpus.two
    more = ["--max-update", 20, "--lr", "1e-2", "--disable-validation", "--no-epoch-checkpoints"]
    inprocess.train(*tiny_training, *more, "--save-dir", tmp_path / "direct")
    swapped = [{"xx": "yy", "yy": "xx"}.get(word, word) for word in tiny_training]
    inprocess.train(*swapped, *more, "--save-dir", tmp_path / "channel")
    splits = [f"--{split}pref={toy_corpus.text}/{split}.yy" for split in ("train", "valid")]
    words = ["--only-source", "--srcdict", two / "dict.yy.txt", "--destdir", tmp_path / "lm"]
    run("fairseq-preprocess", *words, *splits)
    inprocess.train(
        *(tmp_path / "lm", "--task", "language_modeling", *LANGUAGE_MODEL, "--decoder-layers", 1),
        *("--decoder-embed-dim", 16, "--decoder-attention-heads", 2, "--max-tokens", 512, *more),
        *("--decoder-ffn-embed-dim", 16, "--save-dir", tmp_path / "language"),
    )
    paths = [f"{tmp_path}/{name}/checkpoint_last.pt" for name in ("channel", "direct", "language")]
    (tmp_path / "examples").mkdir()
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "noisychannel")  # it writes beside itself
    weights, lenpen = (0.3, 0.2, 1.5), 0.7
    output = run(
        *("python", "-m", "examples.noisychannel.rerank", two, "-n", 4),
        *("--source-lang", "xx", "--target-lang", "yy"),
        *("--gen-model", paths[1], "--gen-model-name", "G", "--data-dir-name", "D"),
        *("-s1", paths[0], "--backwards1", "--model1-name", "C", "-s2", paths[1]),
        *("--model2-name", "G", "-lm", paths[2], "--lm-name", "L", "--lm-bpe-code", "shared"),
        *("--lm-dict", two / "dict.yy.txt", "--lenpen", lenpen),
        *[word for item in enumerate(weights, 1) for word in (f"--weight{item[0]}", item[1])],
        cwd=tmp_path,
    )
    assert "BLEU4 = " in output
    (folder,) = (tmp_path / "examples/noisychannel/rerank_data/D").iterdir()
    texts = {}
    for line in (folder / "generate_output_bpe.txt").read_text(encoding="utf-8").splitlines():
        kind, *columns = line.split("\t")
        if kind[0] == "S":
            texts[int(kind[2:])] = (columns[0], [])
        elif kind[0] == "H":
            texts[int(kind[2:])][1].append(columns[1])
    chosen = (folder / "matched_hypos").read_text(encoding="utf-8").splitlines()
    assert dict(enumerate(chosen)) == choices(texts, paths, weights, lenpen)
    assert any(text != texts[number][1][0] for number, text in enumerate(chosen))
