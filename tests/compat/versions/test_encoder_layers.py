"""Stock encoder layers without duplicate parameters, and checkpoints with and without them."""

import copy

import pytest
import torch
from common.words import dictionary_with

from fairseq_ext.compat.optimizers.optimizer_states import without_dropped_parameters
from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.compat.versions.encoder_layers import COPIES, parameters_with_copies

EMBED, FFN = 8, 12


def config(normalize_before=False):
    from fairseq.models.transformer import TransformerConfig

    cfg = TransformerConfig()
    cfg.encoder.embed_dim, cfg.encoder.ffn_embed_dim, cfg.encoder.attention_heads = EMBED, FFN, 2
    cfg.encoder.normalize_before = normalize_before
    cfg.dropout = cfg.attention_dropout = 0.0
    return cfg


def layer(normalize_before=False):
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    torch.manual_seed(3)
    return TransformerEncoderLayerBase(config(normalize_before))


@pytest.fixture
def plain_layer(plain):
    """The layer class of fairseq as it is, without patches."""
    return plain("fairseq.modules.transformer_layer").TransformerEncoderLayerBase


def states():
    """Input (T, B, D) and its padding mask (B, T), True = padding."""
    padding = torch.tensor([[False, False, False], [True, False, False]])
    return torch.randn(3, 2, EMBED), padding


class Gate(torch.nn.Module):
    """A feed-forward layer with a gate, whose linear layer is not its own weight."""

    def __init__(self, size):
        super().__init__()
        self.gated = torch.nn.Linear(size, 2 * FFN)

    def forward(self, x):
        return torch.nn.functional.glu(self.gated(x))


class Joint(torch.nn.Module):
    """Attention with one projection without a bias; every position sees the mean of all."""

    def __init__(self):
        super().__init__()
        self.projection = torch.nn.Linear(EMBED, EMBED, bias=False)

    def forward(self, query, **others):
        return self.projection(query.mean(0, keepdim=True)).expand_as(query), None


def other_layer():
    """A layer as plugins derive them, whose parts are not fairseq's; also one of its own name."""
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    class OtherLayer(TransformerEncoderLayerBase):
        def __init__(self, cfg):
            super().__init__(cfg)
            self.in_proj_weight = torch.nn.Parameter(torch.randn(2))

        def build_self_attention(self, embed_dim, cfg):
            return Joint()

        def build_fc1(self, input_dim, output_dim, *noise):
            return Gate(input_dim)

    return OtherLayer(config())


def test_parts_of_plugins_need_no_projections():
    first, second = other_layer(), other_layer()
    assert not {"q_proj", "out_proj"} & {*vars(first.self_attn)}
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.in_proj_weight, second.in_proj_weight)
    inputs = states()
    assert torch.equal(first.eval()(*inputs), second.eval()(*inputs))
    sizes = [saved.size for saved in parameters_with_copies([first])]
    assert sizes == [parameter.numel() for parameter in first.parameters()]


@pytest.fixture
def encoder():
    """Function (class of the layers, default: fairseq's): an encoder of one layer."""
    from fairseq.models.transformer import TransformerEncoderBase

    def build(layer_class=None):
        class Encoder(TransformerEncoderBase):
            def build_encoder_layer(self, cfg):
                return layer_class() if layer_class else super().build_encoder_layer(cfg)

        cfg, words = config(), dictionary_with("a", "b")
        cfg.encoder.layers = 1
        return Encoder(cfg, words, torch.nn.Embedding(len(words), EMBED, words.pad()))

    return build


def test_layers_of_plugins_need_no_attributes_of_the_fused_path(encoder):
    class Constant(torch.nn.Module):
        def forward(self, x, encoder_padding_mask):
            return torch.full_like(x, 3)

    output = encoder(Constant).eval()(torch.tensor([[4, 5, 2]]), torch.tensor([3]))
    assert output["encoder_out"][0].eq(3).all()


@pytest.mark.parametrize(
    "version", ["2.6.0a0+df5bbc09d1.nv24.12", "2.13.0rc1", "2.14.0.dev20261101"]
)
def test_versions_of_other_builds_are_not_read(monkeypatch, encoder, version):
    monkeypatch.setattr(torch, "__version__", version)
    model = encoder().eval()
    assert model(torch.tensor([[4, 5, 2]]), torch.tensor([3]))["encoder_out"][0].isfinite().all()


def test_no_duplicate_parameters(plain_layer):
    ours, stock = layer(), plain_layer(config())
    names = {name for name, _ in ours.named_parameters()}
    assert {name for name, _ in stock.named_parameters()} - names == set(COPIES)
    attention, feed_forward = 4 * (EMBED * EMBED + EMBED), 2 * EMBED * FFN + FFN + EMBED
    norms = 2 * 2 * EMBED
    assert sum(p.numel() for p in ours.parameters()) == attention + feed_forward + norms


def test_padded_batch_in_evaluation():
    """Post-norm layers that were loaded and never trained took the fused path and died."""
    ours = layer()
    ours.load_state_dict(ours.state_dict())
    ours.eval()
    with torch.no_grad():
        assert ours(*states()).isfinite().all()


def test_same_function_as_plain_in_training(plain_layer):
    for normalize_before in (False, True):
        ours, stock = layer(normalize_before), plain_layer(config(normalize_before))
        stock.load_state_dict({**stock.state_dict(), **ours.state_dict()})
        inputs = states()
        torch.testing.assert_close(ours.train()(*inputs), stock.train()(*inputs))


def test_checkpoints_of_plain_fairseq_load(plain_layer):
    stock = plain_layer(config())
    ours = layer()
    result = ours.load_state_dict(stock.state_dict(), strict=True)
    assert not result.missing_keys and not result.unexpected_keys
    for name, value in ours.state_dict().items():
        assert torch.equal(value, stock.state_dict()[name]), name


def test_our_checkpoints_load_in_plain_fairseq(plain_layer):
    ours, stock = layer(), plain_layer(config())
    stock.load_state_dict(ours.state_dict(), strict=True)
    query = ours.self_attn.q_proj.weight
    assert torch.equal(stock.in_proj_weight[:EMBED], query)
    assert torch.equal(stock.fc2_weight, ours.fc2.weight)


def test_loading_changes_nothing_of_the_caller(plain_layer):
    saved = plain_layer(config()).state_dict()
    names = set(saved)
    layer().load_state_dict(saved)
    assert set(saved) == names


def test_torchscript():
    ours = layer().eval()
    scripted = torch.jit.script(ours)
    inputs = states()
    torch.testing.assert_close(scripted(*inputs), ours(*inputs))


class Pair(torch.nn.Module):
    """Two encoder layers between other parameters, one of them frozen, one shared."""

    def __init__(self, make):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(EMBED))
        self.layers = torch.nn.ModuleList([make(), make()])
        self.frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
        self.output = torch.nn.Linear(EMBED, 3)
        self.shared = self.layers[0].self_attn.k_proj

    def forward(self, states, padding):
        for layer in self.layers:
            states = layer(states, padding)
        return self.output(states * self.scale).pow(2).sum()


def trained(pair, optimizer, steps):
    torch.manual_seed(5)
    for _ in range(steps):
        optimizer.zero_grad()
        pair.train()(*states()).backward()
        optimizer.step()


def trainable(pair):
    return [parameter for parameter in pair.parameters() if parameter.requires_grad]


def flat_adam(parameters):
    """Adam over one flat parameter, as fairseq's --fp16 keeps it."""
    flat = torch.nn.Parameter(torch.cat([p.detach().reshape(-1) for p in parameters]))
    return torch.optim.Adam([flat], lr=1e-2), flat


def test_resume_from_plain_fairseq_is_exact(plain_layer):
    """Adam's moments reach the parameters they belong to: both models go on alike."""
    torch.manual_seed(1)
    stock = Pair(lambda: plain_layer(config()))
    ours = Pair(layer)
    old = torch.optim.Adam(trainable(stock), lr=1e-2)
    trained(stock, old, 3)
    ours.load_state_dict(copy.deepcopy(stock.state_dict()), strict=True)
    new = torch.optim.Adam(trainable(ours), lr=1e-2)
    # a copy: torch optimizers go on with the very tensors they load
    saved = copy.deepcopy(old.state_dict())
    new.load_state_dict(without_dropped_parameters(saved, parameters_with_copies([ours])))
    trained(stock, old, 3)
    trained(ours, new, 3)
    for name, value in ours.named_parameters():
        torch.testing.assert_close(value, dict(stock.named_parameters())[name])


def test_places_are_those_of_plain_fairseq(plain_layer):
    stock, ours = Pair(lambda: plain_layer(config())), Pair(layer)
    places = parameters_with_copies([ours])
    assert [place.size for place in places] == [p.numel() for p in trainable(stock)]
    names = [name for name, p in stock.named_parameters() if p.requires_grad]
    assert [place.is_dropped for place in places] == [
        name.split(".")[-1] in COPIES for name in names
    ]


def test_flat_states_are_cut(plain_layer):
    stock, ours = Pair(lambda: plain_layer(config())), Pair(layer)
    adam, flat = flat_adam(trainable(stock))
    flat.grad = torch.arange(flat.numel(), dtype=torch.float)
    adam.step()
    places = parameters_with_copies([ours])
    entry = without_dropped_parameters(adam.state_dict(), places)["state"][0]
    slices = [
        part
        for part, place in zip(flat.grad.split([p.size for p in places]), places)
        if not place.is_dropped
    ]
    torch.testing.assert_close(entry["exp_avg"], 0.1 * torch.cat(slices))
    assert entry["exp_avg"].numel() == sum(p.numel() for p in trainable(ours))


@pytest.mark.slow
def test_trainer_resumes_from_plain_fairseq(tiny_training, run, tmp_path):
    """The whole way: train without the patch, resume with it."""
    saving = ["--save-dir", tmp_path, "--no-epoch-checkpoints", "--disable-validation"]
    off = {"FAIRSEQ_EXT_COMPAT_OFF": "encoder_layers_without_copies"}
    run("fairseq-train", *tiny_training, *saving, "--max-update", 2, env=off)
    log = run("fairseq-train", *tiny_training, *saving, "--max-update", 3)
    assert "@ 2 updates" in log and "num_updates 3" in log


def test_an_encoder_without_layers_is_refused():
    from fairseq.models.transformer.transformer_encoder import TransformerEncoderBase

    cfg, words = config(), dictionary_with("a")
    embeddings = torch.nn.Embedding(len(words), EMBED, words.pad())
    cfg.encoder.layers = 1
    assert TransformerEncoderBase(cfg, words, embeddings).num_layers == 1
    cfg.encoder.layers = 0
    with pytest.raises(OptionError, match="--encoder-layers 0.*allowed: at least 1"):
        TransformerEncoderBase(cfg, words, embeddings)

    class Later(TransformerEncoderBase):
        __module__ = "other_project.parts"

    assert Later(cfg, words, embeddings).num_layers == 0
