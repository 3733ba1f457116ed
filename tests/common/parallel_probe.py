"""fairseq-train that notes, after every update, what each worker holds.

    torchrun parallel_probe.py [fairseq-train's arguments]

Appends to the file $PROBE.RANK one JSON object for each update: "gnorm", and under "gradients" and
"states" the names of the parameters that have a gradient and an optimiser state.
"""

import json
import os

import torch.distributed as dist
from fairseq.trainer import Trainer
from fairseq_cli.train import cli_main


def main():
    """Wrap fairseq's optimiser step and gradient clipping, then train."""
    step, clip = Trainer.train_step, Trainer.clip_grad_norm
    seen = {}

    def clip_grad_norm(trainer, clip_norm):
        norm = clip(trainer, clip_norm)
        named = trainer.get_model().named_parameters()
        seen["gradients"] = [name for name, parameter in named if parameter.grad is not None]
        seen["gnorm"] = float(norm)
        return norm

    def train_step(trainer, *arguments, **named):
        result = step(trainer, *arguments, **named)
        states = trainer.optimizer.optimizer.state
        parameters = trainer.get_model().named_parameters()
        seen["states"] = [name for name, parameter in parameters if states.get(parameter)]
        with open(f"{os.environ['PROBE']}.{dist.get_rank()}", "a", encoding="utf-8") as file:
            file.write(json.dumps(seen) + "\n")
        return result

    Trainer.train_step, Trainer.clip_grad_norm = train_step, clip_grad_norm
    cli_main()


if __name__ == "__main__":
    main()
