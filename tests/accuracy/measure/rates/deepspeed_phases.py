"""How long the host takes for each phase of a step under DeepSpeed's engine, beside a plain loop's: one GPU, one case.

    python deepspeed_phases.py zero2 --output phases.jsonl

Cases: plain, checkpointed, zero0 to zero3, zero1-accumulation-fp32, zero2-small-buckets. Each is timed with one sequence of 16
tokens, where the GPU waits, and with 4 of 1,024, without and with a wait for the GPU behind every phase; last the kernels of
each phase under the profiler. Llama-3.2-1B, AdamW of PyTorch.
"""
import argparse
import collections
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, LlamaConfig

from environment import environment

SHAPES = {"tiny": (1, 16), "full": (4, 1024)}
STEPS, WARM_UP = 10, 3
PHASES = ("forward", "backward", "step")
CONFIG = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
          "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256, "tie_word_embeddings": True, "use_cache": False}


def _plain(model):
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return model, lambda loss: loss.backward(), step


def _engine(model, case):
    import deepspeed

    deepspeed.init_distributed("nccl")
    bucket = CONFIG["hidden_size"] ** 2 if "small-buckets" in case else 500_000_000
    config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "gradient_clipping": 1.0,
              "zero_optimization": {"stage": int(case[4]), "overlap_comm": False, "reduce_bucket_size": bucket},
              "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}
    if "accumulation-fp32" in case:
        config["data_types"] = {"grad_accum_dtype": "fp32"}
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    engine = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config=config, optimizer=optimizer)[0]
    return engine, engine.backward, engine.step


def _run(parts, batch, wait, around=lambda phase, work: work()):
    forward, backward, step = parts
    torch.cuda.synchronize()
    start = at = time.perf_counter()
    seconds, loss = {}, None
    for phase in PHASES:
        work = {"forward": lambda: forward(**batch).loss, "backward": lambda: backward(loss), "step": step}[phase]
        given = around(phase, work)
        loss = given if phase == "forward" else loss
        if wait:
            torch.cuda.synchronize()
        now = time.perf_counter()
        seconds[phase], at = now - at, now
    torch.cuda.synchronize()
    return {**seconds, "all": time.perf_counter() - start}


def _middle(steps):
    return {phase: statistics.median(step[phase] for step in steps) for phase in steps[0]}


def _kernels(parts, batch):
    found = {}

    def around(phase, work):
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            given = work()
            torch.cuda.synchronize()
        totals = collections.defaultdict(lambda: [0, 0.0])
        for event in recorded.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                totals[event.name[:100]][0] += 1
                totals[event.name[:100]][1] += event.device_time * 1e-6
        found[phase] = [[name, *counted] for name, counted in sorted(totals.items(), key=lambda row: -row[1][1])[:20]]
        return given

    _run(parts, batch, True, around)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "29533")):
        os.environ.setdefault(name, value)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(LlamaConfig(**CONFIG), dtype=torch.bfloat16)
    if options.case == "checkpointed":
        model.gradient_checkpointing_enable()
    model.train()
    parts = _engine(model, options.case) if options.case.startswith("zero") else _plain(model)
    row = {"case": options.case, "environment": environment()}
    for name, shape in SHAPES.items():
        tokens = torch.randint(0, 1000, shape, device="cuda")
        batch = {"input_ids": tokens, "labels": tokens}
        for _ in range(WARM_UP):
            _run(parts, batch, False)
        row[name] = {"host_seconds": _middle([_run(parts, batch, False) for _ in range(STEPS)]),
                     "waited_seconds": _middle([_run(parts, batch, True) for _ in range(STEPS)])}
    row["kernels"] = _kernels(parts, batch)
    with open(options.output, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(options.case, {name: row[name] for name in SHAPES}, flush=True)
    os._exit(0)  # nothing waits for the process group


if __name__ == "__main__":
    main()
