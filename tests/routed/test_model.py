"""The model: numbers of parameters, what belongs to whom, router weights, errors by name."""

import pytest
import torch
from common.inprocess import configuration
from fairseq import options, tasks
from routed.conftest import ARCHS, SMALL
from streams.directions import WORDS
from toy_sentences import END, PAD, rows

from fairseq_ext.routed.model import layer_owners

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
    layers = {"mtl_full_gru": ([1, 1, 1], [1, 1, 1]), "mtl_partial_gru": ([3, 1, 1], [3, 3, 1])}
    encoder, decoder = layers[arch]
    inputs = [D, 2 * H, 2 * H], [D + 2 * H, H, H]
    total = sum(2 * blocks(count, width) for count, width in zip(encoder, inputs[0]))
    total += sum(blocks(count, width) for count, width in zip(decoder, inputs[1]))
    return total, 2 * H, 3 * H, H


def test_owners_of_layers():
    tasks = ["a-b", "a-c"]
    assert layer_owners("encoder", 3, None, tasks) == [None] * 3
    assert layer_owners("encoder", 3, 2, tasks) == [tasks, None, None]
    assert layer_owners("decoder", 3, 1, tasks) == [tasks, tasks, None]
    assert layer_owners("decoder", 2, 0, tasks) == [tasks, tasks]


@pytest.mark.parametrize("arch", ARCHS)
def test_number_of_parameters(built, arch):
    units, context, states, top = units_of(arch)
    around = states * context + A * (context + 1) + A * states + A + top * (context + D)
    vocabularies = D * (sum(SOURCES.values()) + sum(TARGETS.values()))
    vocabularies += sum(TARGETS.values()) * (top + 1)
    number = sum(parameter.numel() for parameter in built[arch].parameters())
    assert number == units + around + vocabularies


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
        names = [name for group, members in groups.items() if group != "output" for name in members]
        assert sorted(names) == sorted(name for name, _ in model.named_parameters())
        empty = {group for group, members in groups.items() if not members}
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
    by_layer = routed.router_weights(right, prev, "xx-yy")
    assert list(by_layer) == ["encoder.0.forwards", "encoder.0.backwards", "decoder.0"]
    both, of_decoder = literal_weights(routed, right, prev, "xx-yy")
    expected = dict(zip(by_layer, [*both, of_decoder]))
    for name, tokens in zip(by_layer, (right, right, prev)):
        assert by_layer[name].shape == (*tokens.shape, 3)
        real = tokens.ne(PAD)
        assert torch.allclose(by_layer[name].sum(dim=2), real.float())
        assert torch.allclose(by_layer[name][real], expected[name][real], atol=1e-6)
        assert by_layer[name][real].std() > 1e-3, "a router that does not look"
    left = rows(sources, left=True)
    moved = routed.router_weights(left, prev, "xx-yy")
    for name, shares in by_layer.items():
        tokens = (left, right) if "encoder" in name else (prev, prev)
        assert torch.allclose(moved[name][tokens[0].ne(PAD)], shares[tokens[1].ne(PAD)], atol=1e-6)
    other = routed.router_weights(right, prev, "xx-zz")
    assert not torch.allclose(by_layer["decoder.0"], other["decoder.0"], atol=1e-3)


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
    by_padding = []
    for left in (False, True):
        source = rows(sources, left)
        out = direction.encoder(source, None)
        [attention] = direction.decoder(prev, encoder_out=out)[1]["attn"]
        assert not attention[source.eq(PAD).unsqueeze(1).expand_as(attention)].any()
        first = source.ne(PAD).int().argmax(dim=1)  # the task token, which is no word
        assert not attention[torch.arange(2), :, first].any() and attention.any()
        by_padding.append([row[:, real.ne(PAD)] for row, real in zip(attention, source)])
    assert all(torch.allclose(*pair, atol=1e-6) for pair in zip(*by_padding))


def test_sides_of_a_direction_have_their_dictionaries_and_limits(dictionaries):
    """The limits are those of the training: at inference the task has others."""
    words = [dictionaries, "--task", "routed_mtl", "--arch", "routed_gru", *SMALL]
    words += ["--lang-pairs", "xx-yy,zz-yy", "--main-pair", "xx-yy"]
    words += ["--max-source-positions", 7, "--max-target-positions", 9]
    cfg = configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    task.cfg.max_source_positions = task.cfg.max_target_positions = 5
    model = task.build_model(cfg.model)
    direction = model.direction("zz-yy")
    assert direction.encoder.dictionary is task.dictionaries["zz"]
    assert direction.decoder.dictionary is task.dictionaries["yy"]
    assert (direction.encoder.max_positions(), direction.decoder.max_positions()) == (7, 9)
    assert model.max_positions() == (7, 9)


def test_sizes_of_this_file_are_those_of_the_fixture():
    assert SMALL[1::2] == [D, H, A, R]
