"""The training of docs/own-data.md whose options are in a file."""

import pages
import pytest
import torch

PAGE = pages.REPOSITORY / "docs" / "own-data.md"


@pytest.mark.slow
def test_a_model_of_the_file_is_trained(run, toy_corpus, user_dir, tmp_path):
    (block,) = (block for block in pages.blocks(PAGE) if block.name == "mine/dual.yaml")
    text = block.text.replace(
        "source_lang: de, target_lang: en", "source_lang: xx, target_lang: yy"
    )
    (tmp_path / "dual.yaml").write_text(text, encoding="utf-8")
    words = [f"common.user_dir={user_dir}", f"task.data={toy_corpus.two}"]
    words += [f"checkpoint.save_dir={tmp_path}/run", "common.cpu=true", "optimization.max_update=1"]
    run(
        "fairseq-hydra-train",
        "--config-dir",
        tmp_path,
        "--config-name",
        "dual",
        *words,
        cwd=tmp_path,
    )
    stored = torch.load(tmp_path / "run" / "checkpoint_last.pt", weights_only=True)["cfg"]
    assert stored["model"]["_name"] == "dual_transformer" and stored["model"]["embed_dim"] == 128
    assert stored["optimization"]["lr"] == [0.002] and stored["task"]["_name"] == "dual_translation"
