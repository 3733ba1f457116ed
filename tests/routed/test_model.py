"""The model: numbers of parameters, what belongs to whom, router weights, errors by name."""

import argparse

import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset
from fairseq.models import ARCH_CONFIG_REGISTRY
from routed.conftest import ARCHS, SMALL
from routed.support import END, PAD, rows
from streams.directions import WORDS

from fairseq_ext.routed.config import layer_owners
from fairseq_ext.routed.task import TOKEN, add_task_tokens, parse_gamma
from fairseq_ext.routed.validation import parse_target_kinds

D, H, A, R = 10, 8, 14, 6  # SMALL
TASKS = {"xx-yy": ("xx", "yy"), "xx-zz": ("xx", "zz"), "zz-yy": ("zz", "yy")}
SOURCES = {"xx": WORDS["xx"] + 2, "zz": WORDS["zz"] + 1}  # with task tokens
TARGETS = {"yy": WORDS["yy"], "zz": WORDS["zz"] + 1}


def blocks(count, inputs):
    return count * 3 * H * (inputs + H + 1)


def routed_unit(inputs):
    router = R * (inputs + 1) + R * 2 * H + 3 * (R + 1)
    return router + blocks(3 + len(TASKS), inputs)


def units_of(arch):
    """Parameters of the encoder's and the decoder's units, and the widths C, O, O_L."""
    if arch == "routed_gru":
        context = 4 * H
        return 2 * routed_unit(D) + routed_unit(D + context), context, 2 * H, 2 * H
    own = {"mtl_full_gru": ([1, 1, 1], [1, 1, 1]), "mtl_partial_gru": ([3, 1, 1], [3, 3, 1])}
    encoder, decoder = own[arch]
    inputs = [D, 2 * H, 2 * H], [D + 2 * H, H, H]
    total = sum(2 * blocks(count, width) for count, width in zip(encoder, inputs[0]))
    total += sum(blocks(count, width) for count, width in zip(decoder, inputs[1]))
    return total, 2 * H, 3 * H, H


@pytest.mark.parametrize("arch", ARCHS)
def test_number_of_parameters(built, arch):
    units, context, states, top = units_of(arch)
    around = states * context + A * (context + 1) + A * states + A + top * (context + D)
    vocabularies = D * (sum(SOURCES.values()) + sum(TARGETS.values()))
    vocabularies += sum(TARGETS.values()) * (top + 1)
    found = sum(parameter.numel() for parameter in built[arch].parameters())
    assert found == units + around + vocabularies


@pytest.mark.parametrize("arch", ARCHS)
def test_training_on_a_pair_moves_its_parameters_and_no_other(built, arch):
    model = built[arch].eval()
    for pair, (source, target) in TASKS.items():
        model.zero_grad(set_to_none=True)
        tokens = rows([[5, 6, END], [4, END]])
        logits, _ = model(tokens, None, rows([[END, 5, 6]] * 2), pair=pair)
        assert logits.shape == (2, 3, TARGETS[target])
        logits.sin().sum().backward()
        moved = {name for name, p in model.named_parameters() if p.grad is not None}
        assert moved == set(model.pair_parameters(pair))
        assert f"sources.{source}.weight" in moved
    model.zero_grad(set_to_none=True)


def test_groups_of_parameters_are_all_parameters(built):
    for arch, model in built.items():
        groups = model.parameter_groups()
        assert set(groups["output"]) <= set(groups["target.yy"]) | set(groups["target.zz"])
        names = [name for group, own in groups.items() if group != "output" for name in own]
        assert sorted(names) == sorted(name for name, _ in model.named_parameters())
        empty = {group for group, own in groups.items() if not own}
        assert empty == ({f"task.{pair}" for pair in TASKS} if arch == "mtl_full_gru" else set())


def literal_weights(model, source, prev, pair):
    """tau of every unit with the encoder and the decoder step by step."""
    table, target = model.sources[pair.split("-")[0]], model.targets[pair.split("-")[1]]
    annotations, padding, of_encoder = model.encoder(table, source, pair, literal=True)
    encoded = model.decoder.prepare(annotations, padding, pair)
    vectors = model.decoder.embed(target, prev)
    return of_encoder[0], model.decoder.literal(vectors, encoded, pair)[3][0]


@torch.no_grad()
def test_router_weights(routed):
    """One tau per token where it stood, zero at padding; n numbers that add up to one."""
    routed.eval()
    sources, targets = [[5, 6, 7, END], [4, END], [6]], [[END, 5], [END, 6, 7], [END]]
    right, prev = rows(sources), rows(targets)
    found = routed.router_weights(right, prev, "xx-yy")
    assert list(found) == ["encoder.0.forwards", "encoder.0.backwards", "decoder.0"]
    both, of_decoder = literal_weights(routed, right, prev, "xx-yy")
    expected = dict(zip(found, [*both, of_decoder]))
    for name, tokens in zip(found, (right, right, prev)):
        assert found[name].shape == (*tokens.shape, 3)
        real = tokens.ne(PAD)
        assert torch.allclose(found[name].sum(dim=2), real.float())
        assert torch.allclose(found[name][real], expected[name][real], atol=1e-6)
        assert found[name][real].std() > 1e-3, "a router that does not look"
    left = rows(sources, left=True)
    moved = routed.router_weights(left, prev, "xx-yy")
    for name, one in found.items():
        tokens = (left, right) if "encoder" in name else (prev, prev)
        assert torch.allclose(moved[name][tokens[0].ne(PAD)], one[tokens[1].ne(PAD)], atol=1e-6)
    other = routed.router_weights(right, prev, "xx-zz")
    assert not torch.allclose(found["decoder.0"], other["decoder.0"], atol=1e-3)


def test_a_model_without_routers_says_so(built):
    tokens = rows([[5, END]])
    with pytest.raises(ValueError, match="--sharing layers: the model has no router"):
        built["mtl_full_gru"].router_weights(tokens, tokens, "xx-yy")
    with pytest.raises(ValueError, match="pair 'yy-xx': the model has xx-yy, xx-zz, zz-yy"):
        built["routed_gru"].router_weights(tokens, tokens, "yy-xx")


@torch.no_grad()
def test_attention_is_over_the_tokens_where_they_stood(routed):
    sources, prev = [[5, 6, 7, END], [4, END]], rows([[END, 5], [END, 6]])
    direction = routed.direction("xx-yy", need_attention=True).eval()
    found = []
    for left in (False, True):
        source = rows(sources, left)
        out = direction.encoder(source, None)
        [attention] = direction.decoder(prev, encoder_out=out)[1]["attn"]
        assert not attention[source.eq(PAD).unsqueeze(1).expand_as(attention)].any()
        found.append([row[:, real.ne(PAD)] for row, real in zip(attention, source)])
    assert all(torch.allclose(*pair, atol=1e-6) for pair in zip(*found))


@pytest.mark.parametrize("family", ["routed_gru", "mtl_full_gru", "mtl_partial_gru"])
def test_named_sizes(family):
    """A small and a tiny one of every system, the same but for sizes; given values win."""
    sharing = {"sharing", "encoder_layers", "decoder_layers"}
    plain = argparse.Namespace()
    if family != "routed_gru":
        ARCH_CONFIG_REGISTRY[family](plain)
    for size, width in (("small", 200), ("tiny", 48)):
        args = argparse.Namespace(dropout=0.7)
        ARCH_CONFIG_REGISTRY[f"{family}_{size}"](args)
        assert args.hidden_size == args.embed_dim == args.attention_size == width
        assert args.dropout == 0.7
        for name, one in vars(plain).items():
            assert getattr(args, name) == one
        assert not plain.__dict__ or sharing <= set(vars(plain))


def test_owners_of_layers():
    tasks = ["a-b", "a-c"]
    assert layer_owners("encoder", 3, None, tasks) == [None] * 3
    assert layer_owners("encoder", 3, 2, tasks) == [tasks, None, None]
    assert layer_owners("decoder", 3, 1, tasks) == [tasks, tasks, None]
    assert layer_owners("decoder", 2, 0, tasks) == [tasks, tasks]


LAYERS = ["--sharing", "layers"]


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--shared-blocks", 0], "--shared-blocks 0: must be at least 1"),
        (["--encoder-layers", 0], "--encoder-layers 0: must be at least 1"),
        ([*LAYERS, "--decoder-layers", 0], "--decoder-layers 0: must be at least 1"),
        ([*LAYERS, "--shared-decoder-layers", 2], "2: must be between 0 and --decoder-layers, 1"),
        (["--shared-encoder-layers", 1], "--shared-encoder-layers 1: only with --sharing layers"),
        (["--dropout", 1.5], "--dropout 1.5"),
        (["--task-gamma", "xx-qq=1"], "--task-gamma 'xx-qq=1': 'xx-qq' is none of xx-yy"),
        (["--task-gamma", "xx-yy=0"], "'0' must be a number greater than 0"),
        (["--task-patience", -1], "--task-patience -1: must be at least 0"),
        (["--task-patience", 1, "--pair-patience", 2], "not go together with --pair-patience"),
        (["--task-patience", 1, "--disable-validation"], "together with --disable-validation"),
        (["--target-kinds", "zz=song"], "--target-kinds 'zz=song': must be LANG=KIND"),
        (["--target-kinds", "nre=tags"], "'nre=tags': 'nre'; allowed: each of yy, zz once"),
        (["--target-kinds", "yy=tags,yy=trees"], "'yy=trees': 'yy'; allowed: each of yy, zz once"),
        (["--num-batch-buckets", 4], "--num-batch-buckets 4"),
    ],
)
def test_wrong_options_are_named(routed_task, flags, message):
    with pytest.raises(ValueError, match=message):
        routed_task(*flags)


def test_wrong_main_pairs_are_named(routed_task):
    for pairs in ("xx-yy,xx-zz", "xx-yy"):
        with pytest.raises(ValueError, match="--main-pair 'xx-qq': must be one of xx-yy"):
            routed_task(pairs=pairs, main="xx-qq")
    with pytest.raises(ValueError, match="--main-pair None: must be one of xx-yy, xx-zz"):
        routed_task(pairs="xx-yy,xx-zz", main=None)


def test_one_pair_is_a_single_task(routed_task):
    task, model = routed_task("--target-kinds", "zz=tags", pairs="xx-yy", main=None)
    assert str(task.cfg.schedule) == "cycle" and model.pairs == ["xx-yy"]


def test_task_tokens_do_not_depend_on_the_order_of_the_pairs(routed_task):
    symbols = []
    for pairs in ("xx-yy,xx-zz,zz-yy", "zz-yy,xx-zz,xx-yy"):
        task, model = routed_task(pairs=pairs)
        symbols.append({lang: words.symbols for lang, words in task.dictionaries.items()})
        assert model.sources["xx"].num_embeddings == len(task.dictionaries["xx"])
    assert symbols[0] == symbols[1]
    assert symbols[0]["xx"][-2:] == ["__task_xx-yy__", "__task_xx-zz__"]
    assert symbols[0]["zz"][-1] == "__task_zz-yy__" and len(symbols[0]["yy"]) == WORDS["yy"]


def test_task_tokens_are_added_once_and_not_to_those_of_other_tasks():
    words = Dictionary()
    add_task_tokens(words, ["a-c", "a-b"])
    size = len(words)
    add_task_tokens(words, ["a-b", "a-c"])
    assert len(words) == size and words.index(TOKEN.format("a-b")) == size - 2
    with pytest.raises(ValueError, match="has the task tokens __task_a-b__, __task_a-c__"):
        add_task_tokens(words, ["a-b"])


def test_sentences_begin_with_the_token_of_their_task(routed_task):
    task, _ = routed_task("-s", "xx", "-t", "zz", pairs=None, main=None)
    task.pair = "xx-zz"
    lines = [torch.tensor([5, 6, END]), torch.tensor([END])]
    dataset = task.build_dataset_for_inference(lines, [3, 1])
    token = task.dictionaries["xx"].index("__task_xx-zz__")
    assert token != task.dictionaries["xx"].unk()
    assert [dataset[number]["source"].tolist() for number in range(2)] == [
        [token, 5, 6, END],
        [token, END],
    ]
    assert dataset.src_sizes.tolist() == [4, 2]


def test_training_data_begin_with_the_token_too(routed_task, monkeypatch):
    from fairseq_ext.streams.task import StreamsTask

    task, _ = routed_task()
    lines = [torch.tensor([5, 6, END]), torch.tensor([END])]
    words = task.dictionaries
    seen = []

    def plain(self, path, split, pair, combine):
        seen.append(self.cfg.max_source_positions)
        data = ListDataset(lines, [3, 1])
        return LanguagePairDataset(data, data.sizes, words["xx"], data, data.sizes, words["yy"])

    monkeypatch.setattr(StreamsTask, "_load_pair", plain)
    dataset = task._load_pair("", "train", "xx-yy", False)
    limit = task.cfg.max_source_positions
    assert seen == [limit - 1], "--truncate-source leaves a place free"
    token = words["xx"].index("__task_xx-yy__")
    assert dataset[0]["source"].tolist() == [token, 5, 6, END]
    assert dataset[0]["target"].tolist() == [5, 6, END]
    assert dataset.sizes.tolist() == [[4, 3], [2, 1]]


def test_gamma_and_kinds():
    assert parse_gamma("a-c=0.5", ["a-b", "a-c"]) == {"a-b": 1.0, "a-c": 0.5}
    assert parse_gamma(None, ["a-b"]) == {"a-b": 1.0}
    assert parse_target_kinds("ner=tags, q=text") == {"ner": "tags", "q": "text"}


def test_sizes_of_this_file_are_those_of_the_fixture():
    assert SMALL[1::2] == [D, H, A, R]
