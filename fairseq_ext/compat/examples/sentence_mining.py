"""The example criss, run with `python -m`: embeddings of sentences, retrieval and mining."""

from __future__ import annotations

import functools
from typing import Any

from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch


@patch(
    *modules_of_examples("criss.save_encoder"),
    because="fairseq 0.12.2: with --encoder-langtok, save_encoder takes the state of the second "
    "position for the mean of all but the tag",
)
def tags_are_left_out_of_means(module: PatchedModule) -> None:
    """Take the mean over all words but the tag, the first one behind the padding."""
    stock = module.get_avg_pool

    @functools.wraps(stock)
    def get_avg_pool(
        models: Any,
        sample: Any,
        prefix_tokens: Any,
        src_dict: Any,
        remove_bpe: Any,
        has_langtok: bool = False,
    ) -> Any:
        """Return the embedding of each sentence, (B, D), as a numpy array of float32."""
        if not has_langtok:
            return stock(models, sample, prefix_tokens, src_dict, remove_bpe)
        inputs = {**sample["net_input"]}
        inputs.pop("prev_output_tokens", None)
        output = module.EnsembleModel(models).forward_encoder(inputs)[0]
        states = output["encoder_out"][0].float()  # (T, B, D)
        is_word = ~output["encoder_padding_mask"][0].T  # (T, B)
        is_word = is_word & (is_word.cumsum(0) > 1)
        sums = (states * is_word[:, :, None]).sum(0)  # (B, D)
        return (sums / is_word.sum(0)[:, None]).cpu().numpy()

    module.get_avg_pool = get_avg_pool


@patch(
    *modules_of_examples("criss.sentence_retrieval.encoder_analysis"),
    because="numpy 1.24 refuses a view of a dict: encoder_analysis ends in a TypeError",
)
def embeddings_are_stacked(module: PatchedModule) -> None:
    """Give numpy.stack a list."""
    stock = module.np.stack

    def stack(arrays: Any, *args: Any, **options: Any) -> Any:
        return stock(list(arrays), *args, **options)

    overlay_names(module, "np", stack=stack)


@patch(
    *modules_of_examples("criss.mining.mine"),
    because="fairseq 0.12.2: mine.py moves its index to GPUs, which faiss-cpu cannot",
)
def sentences_are_mined_without_a_gpu(module: PatchedModule) -> None:
    """Search on the CPU where faiss knows no GPU."""
    if not module.has_faiss:
        return
    faiss = module.faiss

    def index_cpu_to_all_gpus(index: Any, *args: Any, **options: Any) -> Any:
        has_gpu = getattr(faiss, "get_num_gpus", int)() > 0
        return faiss.index_cpu_to_all_gpus(index, *args, **options) if has_gpu else index

    overlay_names(module, "faiss", index_cpu_to_all_gpus=index_cpu_to_all_gpus)
