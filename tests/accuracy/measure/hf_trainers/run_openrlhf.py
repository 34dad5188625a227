"""Steps of OpenRLHF's programs (train_sft, train_rm, train_dpo) as their command lines run them, beside what was
predicted; run_trainer.py's arguments, records and table.

    python hf_trainers/run_openrlhf.py cases/openrlhf.json --output openrlhf.jsonl

A case has its `program` and the `arguments` that its job was imported from. Wanted: OpenRLHF 3c3be623, DeepSpeed 0.19.6,
and of flash-attn 2.8.3 what this version imports though attention is PyTorch's: bert_padding, utils.distributed and
ops.triton.cross_entropy, which takes the log-probabilities. Weights are random, samples words that fill the length.
"""
import json
import os
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import gate
import host_probe
from jobs import world_of
from run_trainer import main, versions

STEPS = 6


def _sample(program, length):
    """Longer than `length`: the program cuts it there."""
    from words import text

    if program == "train_sft":
        return {"input": text(length // 2), "output": text(length)}
    return {"prompt": text(length // 2), "chosen": text(length), "rejected": text(length)}


def _columns(program):
    named = {"input": "input_key", "output": "output_key"} if program == "train_sft" else {"prompt": "prompt_key"}
    return [word for column, key in named.items() for word in ("--data." + key, column)]


def _write(case, folder, device):
    """The model's checkpoint, its tokenizer and the samples, as a user has them."""
    import torch

    from models import make_config
    from trainer_model import plain_model
    from words import tokenizer

    work, job = case["job"]["workload"], case["job"]
    model = plain_model({**job, "workload": {}}, make_config(job), torch.bfloat16, device)
    model.save_pretrained(folder)
    del model
    torch.cuda.empty_cache()
    tokenizer().save_pretrained(folder)
    random.seed(0)
    batch = work["micro_batch"] * work["gradient_accumulation"] * world_of(job)
    with open(os.path.join(folder, "samples.jsonl"), "w", encoding="utf-8") as file:
        for _ in range(STEPS * batch):
            file.write(json.dumps(_sample(case["program"], work["sequence_length"])) + "\n")


def _folder(case, rank, device):
    """Written by the first rank; the others wait, as no process group exists yet."""
    folder = os.path.join(tempfile.gettempdir(), f"openrlhf-{os.getppid()}")
    ready = os.path.join(folder, "ready")
    if rank == 0:
        os.makedirs(folder)
        _write(case, folder, device)
        with open(ready, "w", encoding="utf-8"):
            pass
    while not os.path.exists(ready):
        time.sleep(0.02)
    return folder


def measure_case(case, output):
    import torch
    import torch.distributed as dist

    from environment import environment
    from openrlhf_step import import_program, measure
    from records import append_line, make_record
    from trainer_step import host_bytes

    trainer_class = import_program(case["program"])
    gate.wait()
    rank, device = int(os.environ["RANK"]), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    folder = _folder(case, rank, device)
    calls = host_probe.calls()
    before = host_bytes()
    arguments = [*case["arguments"], "--train.max_epochs", "1", *_columns(case["program"])]
    counts, mine, timing = measure(
        case, [*arguments, "--model.model_name_or_path", folder, "--data.dataset", os.path.join(folder, "samples.jsonl"),
               "--ckpt.output_dir", os.path.join(folder, "out")], trainer_class, rank, before)
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, {**mine, "host": calls})
    if rank == 0:
        about = {**environment(**versions()), "openrlhf": "3c3be623", "machine": host_probe.machine()}
        record = make_record(case, "run_openrlhf.py", about, counts, ranks, timing)
        append_line(output, {**record, "command": [case["program"], *arguments],
                             "notes": "samples are read by a stand-in for the package datasets; of flash-attn 2.8.3 "
                                      "there are bert_padding, utils.distributed and ops.triton.cross_entropy alone"})
        shutil.rmtree(folder)
    os._exit(0)  # nothing waits for what libraries leave running


if __name__ == "__main__":
    main(measure_case)
