"""Steps of DeepSpeed and of FSDP2 on more ranks than there are GPUs: the first rank's memory, in a fake world.

The programs are those that run on real ranks (run_deepspeed.py, run_fsdp2.py); see fake_world.py for what is fake.
"""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from cases_apart import run_apart
from environment import environment
from fake_world import join_fake_world
from jobs import world_of
from phases import clean, warm_libraries
from records import make_record

UNREAL = ("step_seconds", "tokens_per_second", "device")  # nothing was sent, and there are no communicators


def measure(case, with_account):
    job = case["job"]
    join_fake_world(0, world_of(job))
    device = torch.device("cuda:0")
    warm_libraries(device)
    libraries = {}
    if job["framework"]["name"] == "deepspeed":
        import deepspeed
        import run_deepspeed as program

        deepspeed.init_distributed("nccl")
        libraries = {"deepspeed": deepspeed.__version__}
    else:
        import run_fsdp2 as program
    clean()
    counts, rank, timing = program.measure(case, device, with_account)
    record = make_record(case, os.path.basename(program.__file__), environment(**libraries), counts,
                         [{"rank": 0, **rank}], timing)
    for name in UNREAL:
        record["measured"].pop(name)
    del record["ranks"][0]["device"]
    return {**record, "fake_world": True, "steps": [], "losses": []}


if __name__ == "__main__":
    run_apart(__file__, measure)
