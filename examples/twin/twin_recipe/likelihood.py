"""-log P of the references under a checkpoint's forward network, item by item."""

from argparse import Namespace


def likelihoods(checkpoint, folder, split, user_dir, max_tokens):
    """Return [(nats, tokens)] of the items of a set, in their order; ends of sentences count.

    folder: what the checkpoint was trained on, wherever it is now.
    """
    import torch
    from fairseq import checkpoint_utils, utils

    utils.import_user_module(Namespace(user_dir=str(user_dir)))
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": str(folder)}
    )
    model = models[0].eval()
    task.load_dataset(split)
    dataset, pad = task.dataset(split), task.target_dictionary.pad()
    by_number = {}
    indices = dataset.ordered_indices()
    for batch in dataset.batch_by_size(indices, max_tokens=max_tokens):
        sample = dataset.collater([dataset[index] for index in batch])
        target = sample["target"]
        with torch.no_grad():
            logits = model(**sample["net_input"])[0].float()
        nats = -logits.log_softmax(dim=2).gather(2, target.unsqueeze(2)).squeeze(2)
        real = target.ne(pad)
        sums, counts = (nats * real).sum(dim=1).tolist(), real.sum(dim=1).tolist()
        by_number.update(zip(sample["id"].tolist(), zip(sums, counts)))
    return [by_number[number] for number in range(len(dataset))]
