"""What Python beside a block takes of the host, in turns with the same block without it, so that the host's state cancels.
Without a GPU: sizes are small, and what a CPU multiplies takes no time.

    python host_costs/time_host_calls.py fsdp          FSDP 1 and 2 beside a plain Llama, in plain forward passes under autocast
    python host_costs/time_host_calls.py selective     an operation under a checkpoint's policy, in Python calls (data/probe/host.py)

docs/explanation/time.md has what these printed.
"""
import contextlib
import functools
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import host_probe
from checkpointing import _contexts
from count_host_calls import PHASES, _training

ROUNDS, DEPTHS = 70, (2, 10)
PROBES, BLOCKS = 15, 8
FAMILIES = {"llama": {"num_key_value_heads": 2, "head_dim": 8}, "phi": {"num_key_value_heads": 4}, "opt": {"ffn_dim": 64}}


def _join_fake_world():
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29512")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)


def _step(framework, training, batch, reduces):
    """Seconds of each phase; `reduces`: the last micro-batch of a step."""
    model, alone = training.model, contextlib.nullcontext()
    if framework == "fsdp2":
        model.set_requires_gradient_sync(reduces)
    if framework == "fsdp1" and not reduces:
        alone = model.no_sync()
    with alone:
        marks = [time.perf_counter()]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(input_ids=batch, labels=batch).loss
        marks.append(time.perf_counter())
        training.backward(loss)
        marks.append(time.perf_counter())
    if reduces:
        training.step()
    marks.append(time.perf_counter())
    return [end - begin for begin, end in zip(marks, marks[1:])]


def time_fsdp():
    _join_fake_world()
    batch = torch.randint(0, 128, (1, 8))
    kinds = [("plain", True), *((name, reduces) for name in ("fsdp2", "fsdp1") for reduces in (False, True))]
    models = {(name, depth): _training(name, depth, 0) for name in ("plain", "fsdp2", "fsdp1") for depth in DEPTHS}
    rounds = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for name, reduces in kinds:
            few, many = (_step(name, models[name, depth], batch, reduces) for depth in DEPTHS)
            rounds[name, reduces].append([(y - x) / (DEPTHS[1] - DEPTHS[0]) for x, y in zip(few, many)])
    plain = [statistics.median(column) for column in zip(*rounds["plain", True][5:])]
    for (name, reduces), seconds in rounds.items():
        block = [statistics.median(column) for column in zip(*seconds[5:])]
        more = {phase: round((x - y) / plain[0], 2) for phase, x, y in zip(PHASES, block, plain)}
        print(name, "reduces" if reduces else "adds up", [f"{x * 1e6:.0f} us" for x in block], "more:", more, flush=True)


def _python_call():
    return min(host_probe.calls()["python_call_seconds"] for _ in range(PROBES))


def _dispatched(model, batch):
    """Operations that a mode sees in a forward pass."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Operations(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, types, given=(), named=None):
            self.count += 1
            return function(*given, **(named or {}))

    with Operations() as operations:
        model(input_ids=batch)
    return operations.count


def _family(name, layers):
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = CONFIG_MAPPING[name](hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4,
                                  vocab_size=64, use_cache=False, **FAMILIES[name])
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").train()


def _passes(model, batch, contexts):
    model.gradient_checkpointing_enable({"use_reentrant": False, **({"context_fn": contexts} if contexts else {})})
    best = [1e9, 1e9]
    for _ in range(12):
        begin = time.perf_counter()
        loss = model(input_ids=batch, labels=batch).loss
        between = time.perf_counter()
        loss.backward()
        best = [min(best[0], between - begin), min(best[1], time.perf_counter() - between)]
    return best


def time_selective():
    batch = torch.randint(0, 64, (1, 4))
    for name in FAMILIES:
        model = _family(name, BLOCKS)
        each = (_dispatched(model, batch) - _dispatched(_family(name, BLOCKS // 2), batch)) / (BLOCKS // 2)
        for _ in range(3):
            call = _python_call()
            full, policy = _passes(model, batch, None), _passes(model, batch, functools.partial(_contexts, 2))
            forward, again = ((y - x) / BLOCKS / each for x, y in zip(full, policy))
            print(f"{name}: {each:.0f} operations a block, each {forward * 1e6:.1f} us = {forward / call:.1f} calls forward, "
                  f"{again * 1e6:.1f} us = {again / call:.1f} calls again (a call {call * 1e6:.2f} us)", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"fsdp": time_fsdp, "selective": time_selective}[sys.argv[1]]()
