"""Training steps of plain PyTorch on one GPU."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from compilation import compile_model
from float8 import convert
from jobs import autocast_dtype
from models import build_model, make_batch, parameter_counts
from optimizers import make_optimizer
from phases import clean
from runner import run_cases
from steps import PlainUpdate, run_steps


class SingleTrainer(PlainUpdate):
    def __init__(self, job, model):
        self.job = job
        self.model = model
        self.accumulation = job["workload"]["gradient_accumulation"]
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(job, self.parameters, model)
        self.autocast = getattr(torch, autocast_dtype(job) or "bfloat16")
        # A scale low enough that no step is skipped, so that optimizer states exist from the first step on.
        self.scaler = torch.amp.GradScaler("cuda", init_scale=2.0**8) if job["precision"] == "fp16-autocast" else None

    def forward(self, batch, last):
        with torch.autocast("cuda", dtype=self.autocast, enabled=autocast_dtype(self.job) is not None):
            return self.model(**batch).loss

    def backward(self, loss, last):
        if self.accumulation > 1:
            loss = loss / self.accumulation
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def step(self):
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
            self.clip()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            super().step()


def measure(case, device, with_account):
    job = case["job"]
    config, model = build_model(job, device)
    trainer = SingleTrainer(job, compile_model(convert(model, job), job))
    batch = make_batch(job, config, device)
    clean()
    rank, timing = run_steps(trainer, batch, job, torch.cuda.synchronize, with_account)
    return parameter_counts(model), rank, timing


if __name__ == "__main__":
    run_cases("run_single.py", measure, torch.device("cuda:0"))
