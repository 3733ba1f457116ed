"""fast_noisy_channel (fairseq_ext/compat/examples/noisy_channels.py)."""

from types import SimpleNamespace

import pytest
import torch
from common.words import numbered_words

SOURCE = [4, 5, 6, 2]


@pytest.fixture
def models():
    """A translation model and a language model, small and untrained, and their dictionary."""
    from fairseq.models.transformer import TransformerModel, tiny_architecture
    from fairseq.models.transformer_lm import TransformerLanguageModel, base_lm_architecture

    words = numbered_words(16)
    task = SimpleNamespace(
        source_dictionary=words, target_dictionary=words, dictionary=words, max_positions=lambda: 32
    )
    torch.manual_seed(3)
    built = []
    for model, architecture in (
        (TransformerModel, tiny_architecture),
        (TransformerLanguageModel, base_lm_architecture),
    ):
        args = SimpleNamespace(tokens_per_sample=32)
        for side in ("encoder", "decoder"):
            sizes = {"layers": 1, "embed_dim": 8, "ffn_embed_dim": 8, "attention_heads": 2}
            vars(args).update({f"{side}_{name}": value for name, value in sizes.items()})
        architecture(args)
        built.append(model.build_model(args, task).eval())
    return (*built, words)


@torch.no_grad()
def log_probability(model, target, *source):
    """The log-probability of the words of `target`, with the end where they have it."""
    before = torch.tensor([[2, *target[:-1]]])
    output = model(*source, before)
    lprobs = model.get_normalized_probs(output, log_probs=True)[0]
    return sum(float(lprobs[step, word]) for step, word in enumerate(target))


@pytest.mark.parametrize("min_len", [1, 2])
@pytest.mark.parametrize("k2", [1, 3])
def test_a_cut_hypothesis_has_its_score(example, models, min_len, k2):
    translation, language, dictionary = models
    module = example("fast_noisy_channel", "noisy_channel_sequence_generator")
    generator = module.NoisyChannelSequenceGenerator(
        "noisy_channel",
        tgt_dict=dictionary,
        src_dict=dictionary,
        beam_size=1,
        k2=k2,
        channel_models=[translation],
        lm_models=[language],
        lm_dict=dictionary,
        ch_weight=0.3,
        lm_weight=0.5,
        max_len_b=2,
        min_len=min_len,
    )
    source, lengths = torch.tensor([SOURCE]), torch.tensor([4])
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
    (hypothesis,) = generator.generate([translation], sample)[0]
    target = hypothesis["tokens"].tolist()
    assert len(target) == 3 and target[-1] == 2
    direct = log_probability(translation, target, source, lengths)
    # stock leaves out the end of the source, but counts it in its length s
    channel = log_probability(translation, SOURCE[:-1], torch.tensor([target]), torch.tensor([3]))
    prior = log_probability(language, target)
    # 1/t log P(T|S) + 1/s (0.3 log P(S|T) + 0.5 log P(T)), and once more by the length
    score = (direct / 3 + (0.3 * channel + 0.5 * prior) / 4) / 3
    assert float(hypothesis["score"]) == pytest.approx(score, rel=1e-4)
    assert hypothesis["positional_scores"].sum().item() == pytest.approx(direct, rel=1e-4)
