"""What training on several pairs guarantees: resumption, untouched modules, per-pair metrics."""

import shutil
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from common.float16 import FLOAT16
from common.workers import largest_difference
from fairseq import checkpoint_utils
from streams.support import check_objective, first_update

from fairseq_ext.streams.task import StreamsTask

TWO = ["-s", "xx", "-t", "yy", "--share-all-embeddings"]
THREE = ["--lang-pairs", "xx-yy,xx-zz,zz-yy"]
SCHEDULES = {
    "joint": ["--schedule", "joint"],
    "cycle": ["--schedule", "cycle"],
    "main+aux": ["--schedule", "main+aux", "--main-pair", "xx-yy"],
    "temperature": ["--schedule", "temperature", "--schedule-temperature", 2],
}


def stored(path):
    return checkpoint_utils.torch.load(path, weights_only=True)


def differing(first, second):
    """Names of the tensors that are not equal to the last bit; the names must be the same."""
    assert first.keys() == second.keys()
    return [name for name in first if not torch.equal(first[name], second[name])]


def optimiser_tensors(checkpoint):
    states = checkpoint["last_optimizer_state"]["state"]
    return {
        f"{number}.{name}": value
        for number, state in states.items()
        for name, value in state.items()
        if torch.is_tensor(value)
    }


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "batches",
    [["--batch-size", 16], ["--batch-size", 64, "--update-freq", 2]],
    ids=["mid-epoch", "over-the-end-of-an-epoch"],
)
def test_a_resumed_run_is_the_uninterrupted_run(
    schedule, batches, toy_corpus, train_small, tmp_path
):
    """Six updates; and three, stop, three more: the same numbers to the last bit, with dropout."""
    flags = [*THREE, *SCHEDULES[schedule], *batches, "--dropout", 0.2]
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    train_small(toy_corpus.three, whole, 6, *flags, "--save-interval-updates", 3)
    resumed.mkdir()
    middle = next(whole.glob("checkpoint_*_3.pt"))
    shutil.copy(middle, resumed / "checkpoint_last.pt")
    train_small(toy_corpus.three, resumed, 6, *flags)
    ends = [stored(folder / "checkpoint_last.pt") for folder in (whole, resumed)]
    assert differing(ends[0]["model"], ends[1]["model"]) == []
    assert differing(*(optimiser_tensors(end) for end in ends)) == []
    assert differing(ends[0]["model"], stored(middle)["model"])
    positions = [end["extra_state"]["train_iterator"] for end in ends]
    assert positions[0] == positions[1]


def test_another_seed_is_another_run(toy_corpus, train_small, tmp_path):
    """The broken twin of the test above: what it compares does depend on the order."""
    ends = []
    for seed in (3, 4):
        folder = tmp_path / str(seed)
        train_small(toy_corpus.two, folder, 2, *TWO, "--batch-size", 16, "--seed", seed)
        ends.append(stored(folder / "checkpoint_last.pt")["model"])
    assert differing(*ends)


def moved_components(before, after):
    """Languages of the components whose own parameters differ."""
    return {name.split(".")[1] for name in differing(before["model"], after["model"])}


def test_what_no_pair_touched_does_not_move(toy_corpus, train_small, tmp_path):
    """Adam has momentum for every component, yet an update moves only those of its pair."""
    flags = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle", "--batch-size", 16]
    train_small(toy_corpus.three, tmp_path, 10, *flags, "--save-interval-updates", 1)
    cycle = [("xx", "yy"), ("yy", "xx"), ("yy", "zz"), ("zz", "yy")]
    for update in range(5, 11):
        before, after = (
            stored(tmp_path / f"checkpoint_1_{number}.pt") for number in (update - 1, update)
        )
        source, target = cycle[(update - 1) % 4]
        assert moved_components(before, after) == {source, target}
        moved = differing(before["model"], after["model"])
        context = [name for name in moved if "context_attention" in name]
        assert context and all(f"components.{target}." in name for name in context)


def test_a_late_pair_moves_nothing_before_it_joins(toy_corpus, train_small, tmp_path):
    flags = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle", "--batch-size", 16]
    flags += ["--join-at", "yy-zz=3,zz-yy=4"]
    train_small(toy_corpus.three, tmp_path, 6, *flags, "--save-interval-updates", 1)
    cycle = [("xx", "yy"), ("yy", "xx"), ("xx", "yy"), ("yy", "xx"), ("yy", "zz"), ("zz", "yy")]
    for update in range(2, 7):
        before, after = (
            stored(tmp_path / f"checkpoint_1_{number}.pt") for number in (update - 1, update)
        )
        assert moved_components(before, after) == set(cycle[update - 1])


def test_updates_before_the_data_begin_anew_count(toy_corpus, train_small, tmp_path):
    """--join-at with --reset-dataloader: two updates are done, a pair joins after the third."""
    flags = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle", "--batch-size", 16]
    flags += ["--join-at", "yy-zz=3,zz-yy=4"]
    train_small(toy_corpus.three, tmp_path, 5, *flags, "--save-interval-updates", 2)
    flags += ["--restore-file", tmp_path / "checkpoint_1_2.pt", "--reset-dataloader"]
    records = train_small(toy_corpus.three, tmp_path, 6, *flags)
    trained = [
        [pair for pair in ("xx-yy", "yy-xx", "yy-zz", "zz-yy") if f"{pair}_loss" in record]
        for record in records
        if "loss" in record
    ]
    assert trained == [["xx-yy"], ["yy-xx"], ["yy-zz"], ["zz-yy"]]


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--join-at", "yy-zz=6"], "--join-at yy-zz=6: the run ends after --max-update 6"),
        (["--join-at", "xx-zz=2"], "--join-at 'xx-zz=2': 'xx-zz' is none of xx-yy, yy-xx, yy-zz"),
        (["--join-at", "yy-zz=70", "--max-epoch", 1, "--max-update", 0], "which is 45 updates"),
    ],
)
def test_a_pair_that_cannot_join_is_refused(flags, message, toy_corpus, train_small, tmp_path):
    pairs = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle", "--batch-size", 16]
    with pytest.raises(ValueError, match=message):
        train_small(toy_corpus.three, tmp_path, 6, *pairs, *flags)


def test_a_joint_update_is_one_step_on_the_sum_of_both_losses(toy_corpus):
    """-log P(y|x; f) - log P(x|y; g): gradients, loss and sample size are those of the sum."""
    from streams.conftest import MODEL, TRAINING

    arguments = [toy_corpus.two, *TRAINING, *MODEL, *TWO, "--dropout", 0]
    task, model, criterion, sample = first_update(arguments, 8)
    assert list(sample) == ["xx-yy", "yy-xx"]
    primal, dual = sample.values()
    assert torch.equal(primal["id"], dual["id"])
    objective = sum(criterion(model, part)[0] for part in (primal, dual))
    size, log = check_objective(task, model, criterion, sample, objective)
    assert size == primal["ntokens"] + dual["ntokens"]
    assert log["ntokens"] == size and log["xx-yy:ntokens"] == primal["ntokens"]


@pytest.fixture(scope="module")
def validated(toy_corpus, train_small, tmp_path_factory):
    """(save_dir, records) of two short epochs with BLEU, best checkpoint by the worst pair."""
    folder = tmp_path_factory.mktemp("validated")
    records = train_small(
        toy_corpus.two,
        folder,
        24,
        *TWO,
        *["--batch-size", 20, "--validate-interval", 1, "--lr", 0.02, "--dropout", 0],
        *["--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_b": 10}'],
        *["--best-checkpoint-metric", "worst_bleu", "--maximize-best-checkpoint-metric"],
    )
    return folder, records


def test_each_pair_is_validated_on_its_own(validated):
    _, records = validated
    validations = [record for record in records if "valid_loss" in record]
    assert len(validations) == 2
    for record in validations:
        for pair in ("xx-yy", "yy-xx"):
            for name in ("loss", "nll_loss", "ppl", "bleu"):
                assert isinstance(record[f"valid_{pair}_{name}"], float)
            ppl = record[f"valid_{pair}_ppl"]
            assert ppl == pytest.approx(2 ** record[f"valid_{pair}_nll_loss"], rel=5e-3)
        losses = [record[f"valid_{pair}_loss"] for pair in ("xx-yy", "yy-xx")]
        assert min(losses) <= record["valid_loss"] <= max(losses)
        bleus = [record[f"valid_{pair}_bleu"] for pair in ("xx-yy", "yy-xx")]
        assert record["valid_bleu"] == pytest.approx(sum(bleus) / 2, abs=0.011)
        assert record["valid_worst_bleu"] == pytest.approx(min(bleus), abs=0.011)
    assert validations[0]["valid_xx-yy_loss"] != validations[0]["valid_yy-xx_loss"]


def test_each_pair_is_logged_in_training(validated):
    _, records = validated
    inner = [record for record in records if "xx-yy_loss" in record]
    assert inner
    for record in inner:
        losses = [record["xx-yy_loss"], record["yy-xx_loss"]]
        assert min(losses) - 0.01 <= record["loss"] <= max(losses) + 0.01


def test_worst_bleu_chooses_the_best_checkpoint(validated):
    folder, records = validated
    scores = [record["valid_worst_bleu"] for record in records if "valid_loss" in record]
    best = stored(folder / "checkpoint_best.pt")["extra_state"]
    assert best["best"] == pytest.approx(max(scores), abs=0.011)
    assert scores[1] > scores[0], "the run is meant to improve"
    assert best["val_loss"] == pytest.approx(scores[1], abs=0.011)


@pytest.mark.parametrize("pair", ["xx-yy", "yy-xx"])
def test_validation_bleu_is_that_of_generate(validated, toy_corpus, pair):
    folder, records = validated
    source, target = pair.split("-")
    output = inprocess.generate(
        toy_corpus.two,
        *["--task", "dual_translation", "-s", source, "-t", target, "--gen-subset", "valid"],
        *["--path", folder / "checkpoint_last.pt", "--beam", 2, "--max-len-b", 10],
        *["--scoring", "sacrebleu", "--batch-size", 7],
    )
    line = next(line for line in output.splitlines() if line.startswith("Generate valid"))
    score = float(line.split("BLEU = ")[1].split()[0])
    last = [record for record in records if "valid_loss" in record][-1]
    assert last[f"valid_{pair}_bleu"] == pytest.approx(score, abs=0.06)


@pytest.mark.parametrize("pair", ["xx-yy", "yy-xx"])
def test_validation_loss_is_that_of_fairseq_validate(validated, toy_corpus, pair):
    folder, records = validated
    source, target = pair.split("-")
    validated_again = inprocess.validate(
        toy_corpus.two,
        *["--task", "dual_translation", "-s", source, "-t", target],
        *["--path", folder / "checkpoint_last.pt", "--batch-size", 9],
    )
    last = [record for record in records if "valid_loss" in record][-1]
    name = f"valid_{pair}_loss"
    assert validated_again[-1][name] == pytest.approx(last[name], abs=2e-3)


@pytest.mark.parametrize("metric", ["bleu", "yy-xx_bleu", "xx-yy_loss", "log_likelihood"])
def test_every_metric_can_choose_the_checkpoint(metric, toy_corpus, train_small, tmp_path):
    maximise = [] if metric.endswith("loss") else ["--maximize-best-checkpoint-metric"]
    records = train_small(
        toy_corpus.two,
        tmp_path,
        2,
        *TWO,
        *["--batch-size", 64, "--validate-interval", 1, "--best-checkpoint-metric", metric],
        *["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 5}', *maximise],
    )
    value = [record[f"valid_{metric}"] for record in records if "valid_loss" in record][-1]
    best = stored(tmp_path / "checkpoint_best.pt")["extra_state"]["best"]
    assert best == pytest.approx(value, abs=0.011)


@pytest.fixture(scope="module")
def three(toy_corpus, train_small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("three")
    train_small(toy_corpus.three, folder, 1, *THREE, "--batch-size", 64)
    return folder / "checkpoint_last.pt"


def test_the_checkpoint_says_which_pairs_exist(three):
    pairs = "xx-yy,yy-xx,xx-zz,zz-xx,zz-yy,yy-zz"
    assert stored(three)["cfg"]["model"]["lang_pairs"] == pairs


@pytest.mark.parametrize("pair", ["xx-yy", "yy-xx", "zz-xx", "yy-zz"])
def test_inference_needs_only_source_and_target(three, toy_corpus, pair):
    source, target = pair.split("-")
    output = inprocess.generate(
        toy_corpus.three,
        *["--task", "dual_translation", "-s", source, "-t", target],
        *["--path", three, "--beam", 2, "--max-len-b", 6],
    )
    assert len(inprocess.hypotheses(output)) == toy_corpus.sizes["test"]
    sources = {line.split("\t")[1] for line in output.splitlines() if line.startswith("S-")}
    assert sources <= set(toy_corpus.lines[source])


@pytest.mark.parametrize("pair", ["xx-yy", "zz-xx"])
def test_validation_of_one_of_many_pairs(three, toy_corpus, pair):
    source, target = pair.split("-")
    validated = inprocess.validate(
        toy_corpus.three,
        *["--task", "dual_translation", "-s", source, "-t", target],
        *["--path", three, "--batch-size", 8],
    )
    (record,) = [record for record in validated if "valid_loss" in record]
    assert record[f"valid_{pair}_loss"] == record["valid_loss"]
    assert not any("yy-zz" in name for name in record)


def test_the_chunked_criterion_trains_as_the_stock_one(toy_corpus, train_small, tmp_path):
    ends = []
    for name in ("label_smoothed_cross_entropy", "chunked_label_smoothed_cross_entropy"):
        flags = [*TWO, "--batch-size", 16, "--criterion", name, "--adam-eps", 1e-6]
        records = train_small(toy_corpus.two, tmp_path / name, 4, *flags)
        losses = [record["loss"] for record in records if "loss" in record]
        ends.append((losses, stored(tmp_path / name / "checkpoint_last.pt")["model"]))
    (stock_losses, stock), (our_losses, ours) = ends
    assert our_losses == pytest.approx(stock_losses, abs=2e-3) and len(our_losses) == 4
    assert largest_difference(stock, ours) < 1e-5


def test_a_direction_the_checkpoint_lacks_is_refused(toy_corpus, train_small, tmp_path):
    train_small(toy_corpus.two, tmp_path, 1, *TWO, "--batch-size", 64)
    with pytest.raises(ValueError, match="-s xx -t zz: the checkpoint translates xx-yy, yy-xx"):
        inprocess.generate(
            toy_corpus.three,
            *["--task", "dual_translation", "-s", "xx", "-t", "zz"],
            *["--path", tmp_path / "checkpoint_last.pt"],
        )


def test_generation_without_a_direction_is_refused(three, toy_corpus):
    with pytest.raises(ValueError, match="-s and -t|-s None -t None"):
        inprocess.generate(
            toy_corpus.three,
            *["--task", "dual_translation", "--lang-pairs", "xx-yy,xx-zz,zz-yy"],
            *["--path", three],
        )


def test_bfloat16_trains_where_every_update_touches_everything(toy_corpus, train_small, tmp_path):
    records = train_small(toy_corpus.two, tmp_path, 2, *TWO, "--batch-size", 64, "--bf16")
    assert any("loss" in record for record in records)


def test_attention_in_bfloat16_resumes_bit_for_bit(toy_corpus, train_small, tmp_path):
    # --bf16 stores rounded parameters, as stock does
    flags = [*TWO, "--batch-size", 16, "--amp"]
    train_small(toy_corpus.two, tmp_path / "whole", 4, *flags)
    for updates in (2, 4):
        train_small(toy_corpus.two, tmp_path / "parts", updates, *flags)
    whole, parts = (stored(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "parts"))
    assert differing(whole["model"], parts["model"]) == []
    assert differing(optimiser_tensors(whole), optimiser_tensors(parts)) == []


PRECISIONS = {
    "bf16": ["--bf16"],
    "bf16 no flat": ["--bf16", "--fp16-no-flatten-grads"],
    "fp16 no flat": ["--fp16", "--fp16-no-flatten-grads"],
    "small bf16": ["--memory-efficient-bf16"],
    "small fp16": ["--memory-efficient-fp16"],
    "amp": ["--amp"],
}


@pytest.mark.parametrize(
    "precision", [pytest.param(p, marks=[FLOAT16] * ("fp16" in p)) for p in PRECISIONS]
)
def test_no_precision_moves_an_untouched_module(precision, toy_corpus, train_small, tmp_path):
    """The fp32 copies that the optimiser works on must be left alone as well."""
    flags = ["--lang-pairs", "xx-yy,yy-zz", "--schedule", "cycle", "--batch-size", 16]
    flags += PRECISIONS[precision]
    train_small(toy_corpus.three, tmp_path, 6, *flags, "--save-interval-updates", 1)
    for update, languages in ((5, {"xx", "yy"}), (6, {"xx", "yy"})):
        before, after = (
            stored(tmp_path / f"checkpoint_1_{number}.pt") for number in (update - 1, update)
        )
        assert moved_components(before, after) == languages


def test_one_flat_copy_is_refused_where_parameters_are_left_out():
    """--fp16 on CUDA: Adam would move them along their old momentum."""
    task = object.__new__(StreamsTask)
    flat = SimpleNamespace(has_flat_params=True)
    task.pair_parallel = SimpleNamespace(assignment=None)
    task._untouched = [torch.nn.Parameter(torch.zeros(1))]
    with pytest.raises(ValueError, match="--fp16: .* add --fp16-no-flatten-grads"):
        task.optimizer_step(flat, None, 1)


def test_no_sentence_within_the_limits_names_the_pair(toy_corpus, train_small, tmp_path):
    flags = [*TWO, "--batch-size", 64, "--max-source-positions", 1]
    with pytest.raises(ValueError, match="pair xx-yy: no sentence is left"):
        train_small(toy_corpus.two, tmp_path, 1, *flags, "--skip-invalid-size-inputs-valid-test")
