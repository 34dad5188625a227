"""Prefill and decode with a KV cache under transformers' tensor-parallel plans: the first rank's memory, alone on a GPU
in a fake world (fake_world.py)."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from cases_apart import run_apart
from environment import environment
from fake_world import join_fake_world
from jobs import world_of
from models import parameter_counts
from records import make_record
from run_inference import Generation, run_rounds


def measure(case, with_account):
    from run_tensor_parallel import build_sharded_model

    job = case["job"]
    join_fake_world(0, world_of(job))
    config, model = build_sharded_model(job, job["parallel"]["tensor"])
    model.eval()
    rank = {"rank": 0, **run_rounds(Generation(job, config, model, torch.device("cuda:0")), with_account)}
    record = make_record(case, "run_inference_divided.py", environment(), parameter_counts(model), [rank], {})
    del record["measured"]["device"], rank["device"]  # no communicators: the device holds less than a real rank's
    return record


if __name__ == "__main__":
    run_apart(__file__, measure)
