"""Imports of plugins for earlier versions of fairseq."""

import io

import pytest
import torch

from fairseq_ext.compat.versions.moved_names import MOVED, MOVED_LATER, MOVED_MODULES


def test_layers_of_the_transformer():
    from fairseq import modules
    from fairseq.models import transformer
    from fairseq.models.fairseq_encoder import EncoderOut

    assert transformer.EncoderOut is EncoderOut
    for name in ("TransformerEncoderLayer", "TransformerDecoderLayer", "LayerNorm"):
        assert getattr(transformer, name) is getattr(modules, name)
    # what the module defines itself stays
    assert transformer.Embedding.__module__.startswith("fairseq.models.transformer")


def test_lines_and_subwords():
    from fairseq.binarizer import safe_readline
    from fairseq.data.data_utils import process_bpe_symbol

    assert safe_readline(io.StringIO("a b\nc")) == "a b\n"
    assert process_bpe_symbol("a@@ b c", "@@ ") == "ab c"


def test_features_of_recordings():
    from fairseq.data.audio import audio_utils, speech_to_text_dataset

    for name in ("get_fbank", "get_waveform", "is_npy_data", "get_features_from_npy_or_audio"):
        assert getattr(speech_to_text_dataset, name) is getattr(audio_utils, name)
    assert speech_to_text_dataset.is_flac_or_wav_data is audio_utils.is_sf_audio_data
    assert speech_to_text_dataset.read_from_uncompressed_zip is audio_utils.read_from_stored_zip


def test_labels_of_recordings():
    from fairseq.data import Dictionary
    from fairseq.tasks import audio_finetuning
    from fairseq.tasks.audio_pretraining import AudioPretrainingTask, LabelEncoder

    assert LabelEncoder is audio_finetuning.LabelEncoder
    assert AudioPretrainingTask.__name__ == "AudioPretrainingTask"
    dictionary = Dictionary()
    index = dictionary.add_symbol("A")
    assert LabelEncoder(dictionary)("A A").tolist() == [index, index]


def test_seed_of_a_block():
    from fairseq.utils import with_torch_seed

    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    with with_torch_seed(3):
        inside = torch.rand(2)
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(2), inside)


def test_modules_and_classes_of_models():
    from fairseq.data.truncate_dataset import TruncateDataset
    from fairseq.models import levenshtein_transformer, nat, register_model, transformer
    from fairseq.models.nonautoregressive_transformer import NATransformerModel
    from fairseq.models.roberta import model as roberta
    from fairseq.models.transformer import FairseqEncoder, utils
    from fairseq.modules import Highway, TransformerSentenceEncoder
    from fairseq.optim.lr_scheduler.fixed_schedule import FixedLRSchedule, FixedSchedule

    assert levenshtein_transformer is nat.levenshtein_transformer
    assert NATransformerModel is nat.NATransformerModel
    assert transformer.register_model is register_model
    assert roberta.TransformerSentenceEncoder is TransformerSentenceEncoder
    assert FixedSchedule is FixedLRSchedule
    assert utils.__name__ == "fairseq.utils" and FairseqEncoder.__name__ == "FairseqEncoder"
    assert Highway.__name__ == "Highway" and TruncateDataset.__name__ == "TruncateDataset"


def test_bases_of_tasks_and_models():
    from fairseq.dataclass.utils import StrEnum
    from fairseq.models.cmlm_transformer import base_architecture, cmlm_base_architecture
    from fairseq.models.levenshtein_transformer import TransformerModel
    from fairseq.models.roberta.model import FairseqLanguageModel, XLMRModel
    from fairseq.modules.highway import Highway
    from fairseq.progress_bar import json_progress_bar
    from fairseq.tasks.language_modeling import FairseqTask
    from fairseq.tasks.translation import LegacyFairseqTask, options

    assert (
        issubclass(LegacyFairseqTask, FairseqTask) and base_architecture is cmlm_base_architecture
    )
    assert TransformerModel.__module__ == "fairseq.models.transformer.transformer_legacy"
    assert XLMRModel.__module__ == "fairseq.models.roberta.model_xlmr"
    assert FairseqLanguageModel.__module__ == "fairseq.models.fairseq_model"
    assert (options.__name__, json_progress_bar.__name__) == ("fairseq.options", "JsonProgressBar")
    assert (StrEnum.__name__, Highway.__name__) == ("StrEnum", "Highway")


def test_options_of_schedules():
    from fairseq.optim.lr_scheduler import cosine_lr_scheduler, inverse_square_root_schedule

    assert cosine_lr_scheduler.CosineConfig is cosine_lr_scheduler.CosineLRScheduleConfig
    options = inverse_square_root_schedule.InverseSquareRootScheduleConfig
    assert options is inverse_square_root_schedule.InverseSquareRootLRScheduleConfig


def test_every_former_name_is_there():
    import importlib

    places = [*MOVED.items(), *MOVED_LATER.items(), *((place, ()) for place in MOVED_MODULES)]
    for place, names in places:
        module = importlib.import_module(place)
        assert all(hasattr(module, name) for name in names), place


def test_everything_of_the_transformer():
    imported = {}
    exec("from fairseq.models.transformer import *", imported)
    for name in ("F", "nn", "math", "register_model", "LayerNorm", "FairseqEncoder", "options"):
        assert name in imported
    assert imported["nn"] is torch.nn and imported["Tensor"] is torch.Tensor
    assert imported["TransformerAlignModel"].__module__ == "fairseq.models.transformer_align"
    # and what the module lists itself
    assert {"TransformerModel", "Embedding", "base_architecture"} <= set(imported)


def test_activations_and_what_is_no_name():
    from fairseq import modules, utils

    assert utils.gelu_accurate is modules.gelu_accurate
    assert utils.gelu is modules.gelu
    with pytest.raises(AttributeError, match="module 'fairseq.utils' has no attribute 'relu'"):
        utils.relu  # noqa: B018


def test_skipped_tensors_have_their_former_name():
    from fairseq.models.model_utils import skip_tensors

    tensors = skip_tensors({"x": torch.arange(3)}, torch.tensor([True, False, True]))
    assert tensors["x"].tolist() == [0, 2]


def test_processes_without_a_group():
    from fairseq import distributed_utils

    assert (distributed_utils.get_rank(), distributed_utils.get_world_size()) == (0, 1)
    assert distributed_utils.get_world_size(group=None) == 1
    assert distributed_utils.get_default_group() is None


def test_sums_over_all_processes_without_a_group(tmp_path):
    import torch.distributed as dist
    from fairseq import distributed_utils

    dist.init_process_group("gloo", f"file://{tmp_path / 'meet'}", rank=0, world_size=1)
    try:
        assert (distributed_utils.get_rank(), distributed_utils.get_world_size()) == (0, 1)
        total = torch.tensor([3.0])
        distributed_utils.all_reduce(total)
        assert total.item() == 3
        assert distributed_utils.get_rank(distributed_utils.get_default_group()) == 0
    finally:
        dist.destroy_process_group()
        vars(distributed_utils.get_global_group).pop("_global_group", None)
