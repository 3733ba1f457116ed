"""Sets in several parts, of which --upsample-primary repeats the first."""

import shutil

import pytest
from common.inprocess import parsed


@pytest.mark.parametrize("task", ["translation", "dual_translation"])
@pytest.mark.parametrize("upsampled, times", [([], 1), (["--upsample-primary", 3], 3)])
def test_parts_of_a_training_set_are_read(task, upsampled, times, toy_corpus, tmp_path):
    from fairseq.tasks import setup_task

    data = shutil.copytree(toy_corpus.two, tmp_path / "data")
    for part in list(data.glob("valid.*")):
        shutil.copy(part, data / part.name.replace("valid.", "train1."))
    arch = "transformer" if task == "translation" else "dual_transformer_tiny"
    words = ["--task", task, "-s", "xx", "-t", "yy", "--arch", arch, *upsampled]
    built = setup_task(parsed(data, *words))
    built.load_dataset("train", combine=True)
    first, second = (
        len((toy_corpus.text / f"{split}.xx").read_text(encoding="utf-8").splitlines())
        for split in ("train", "valid")
    )
    dataset = built.datasets["train"]
    dataset = getattr(dataset, "datasets", {"xx-yy": dataset})["xx-yy"]
    assert len(dataset) == times * first + second


# {task: architecture and options}
COMBINING = {
    "translation": ["transformer"],
    "translation_lev": ["levenshtein_transformer"],
    "translation_from_pretrained_bart": ["mbart_base", "--langs", "xx,yy"],
    "multilingual_translation": ["multilingual_transformer", "--lang-pairs", "xx-yy"],
    "translation_multi_simple_epoch": ["transformer", "--langs", "xx,yy", "--lang-pairs", "xx-yy"],
    "dual_translation": ["dual_transformer_tiny"],
}


@pytest.mark.parametrize("task", ["translation", "translation_multi_simple_epoch",
                                  "dual_translation"])  # fmt: skip
def test_a_training_set_of_one_part_is_named(task, toy_corpus, caplog):
    from fairseq.tasks import setup_task

    words = ["--task", task, "-s", "xx", "-t", "yy", "--arch", *COMBINING[task]]
    words += ["--max-source-positions", 99, "--max-target-positions", 99]
    for times, message in (
        (1, []),
        (
            3,
            [
                "--upsample-primary 3 does nothing: the data have no "
                "train1, beside which train would be repeated"
            ],
        ),
    ):
        built = setup_task(parsed(toy_corpus.two, *words, "--upsample-primary", times))
        for split in ("train", "valid"):
            built.load_dataset(split, combine=True)
        assert {text for text in caplog.messages if "upsample-primary" in text} == set(message)


@pytest.mark.parametrize("task", COMBINING)
def test_combined_validation_sets_are_read_once(task, toy_corpus, tmp_path):
    """--upsample-primary is for training: a score counts each sentence once."""
    from fairseq.tasks import setup_task

    data = shutil.copytree(toy_corpus.two, tmp_path / "data")
    for part in list(data.glob("test.*")):
        shutil.copy(part, data / part.name.replace("test.", "valid1."))
    words = ["--task", task, "-s", "xx", "-t", "yy", "--arch", *COMBINING[task]]
    words += ["--max-source-positions", 99, "--max-target-positions", 99]
    built = setup_task(parsed(data, *words, "--upsample-primary", 3))
    built.load_dataset("valid", combine=True)
    dataset = built.datasets["valid"]
    sets = getattr(dataset, "datasets", [dataset])  # of pairs, by name or one by one
    assert (
        len(sets["xx-yy"] if isinstance(sets, dict) else sets[0])
        == toy_corpus.sizes["valid"] + toy_corpus.sizes["test"]
    )
    assert getattr(built, "args", getattr(built, "cfg", None)).upsample_primary == 3
