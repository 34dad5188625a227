"""What DeepSpeed's stage 3 takes of the host beside a block of a Llama, by part, in turns with a plain block and with stage 1.
Without a GPU, one rank of two whose other rank is fake; sizes are small, and its windows are as small beside them as said.

    python host_costs/time_zero3.py        microseconds a block, forward and backward; then those of each part

What differs between the windows tells the parts apart: `persistent` has hooks alone, `kept` tensors that one gather brings
for the backward pass too, `again` a gather for each module in both passes, `auto` HF Trainer's sizes: a reduction for
nearly each gradient. docs/explanation/time.md has what this printed.
"""
import os
import statistics
import time

import torch

from count_host_calls import HIDDEN, Engine, _model, _training

ROUNDS, DEPTHS, COUNTED = 30, (2, 10), 8
LARGE = 5 * 10**8
SMALL = {"stage3_param_persistence_threshold": 10 * HIDDEN}
GATHERS = {**SMALL, "stage3_prefetch_bucket_size": int(0.9 * HIDDEN**2)}
WINDOWS = {"persistent": (LARGE, {}), "kept": (LARGE, SMALL), "again": (LARGE, {**GATHERS, "stage3_max_reuse_distance": 0}),
           "auto": (HIDDEN**2, GATHERS)}
PARTS = {"fetch_sub_module": "a module's fetch", "release_sub_module": "its release",
         "_PartitionedParameterCoordinator__all_gather_params_": "a gather",
         "_DeepSpeedZeroOptimizer_Stage3__add_grad_to_ipg_bucket": "a gradient",
         "_DeepSpeedZeroOptimizer_Stage3__reduce_and_partition_ipg_grads": "a reduction"}


def _join_fake_world():
    import torch.distributed as dist
    from deepspeed.accelerator import get_accelerator
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29514")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    get_accelerator().device_count = lambda: 2  # a CPU's asks another program, which takes milliseconds


def _step(training, batch):
    marks = [time.perf_counter()]
    loss = training.model(input_ids=batch, labels=batch).loss
    marks.append(time.perf_counter())
    training.backward(loss)
    marks.append(time.perf_counter())
    training.step()
    return [end - begin for begin, end in zip(marks, marks[1:])]


def time_blocks(batch):
    made = {"plain": lambda depth: _training("plain", depth, 0), "stage 1": lambda depth: Engine(_model(depth), 1, LARGE)}
    for name, (bucket, windows) in WINDOWS.items():
        made[name] = lambda depth, said=(bucket, windows): Engine(_model(depth), 3, *said)
    models = {(name, depth): make(depth) for name, make in made.items() for depth in DEPTHS}
    rounds = {name: [] for name in made}
    for _ in range(ROUNDS):
        for name in made:
            few, many = (_step(models[name, depth], batch) for depth in DEPTHS)
            rounds[name].append([(y - x) / (DEPTHS[1] - DEPTHS[0]) for x, y in zip(few, many)])
    for name, seconds in rounds.items():
        forward, backward = (statistics.median(column[5:]) for column in zip(*seconds))
        print(f"{name}: forward {forward * 1e6:.0f}, backward {backward * 1e6:.0f} us a block", flush=True)


def _watch(owner, name, taken):
    inner = getattr(owner, name)

    def timed(*given, **named):
        begin = time.perf_counter()
        try:
            return inner(*given, **named)
        finally:
            taken.append(time.perf_counter() - begin)

    setattr(owner, name, timed)


def time_parts(batch):
    from deepspeed.runtime.zero.partitioned_param_coordinator import PartitionedParameterCoordinator
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3

    engines = {name: Engine(_model(DEPTHS[1]), 3, *said) for name, said in WINDOWS.items()}
    taken = {part: [] for part in PARTS}
    for engine in engines.values():
        for _ in range(4):
            _step(engine, batch)
    for part in PARTS:
        owner = PartitionedParameterCoordinator if hasattr(PartitionedParameterCoordinator, part) else DeepSpeedZeroOptimizer_Stage3
        _watch(owner, part, taken[part])
    for name, engine in engines.items():
        for seconds in taken.values():
            seconds.clear()
        for _ in range(COUNTED):
            _step(engine, batch)
        print(name + ":", ", ".join(
            f"{words} {len(taken[part]) / COUNTED / DEPTHS[1]:.1f} times, {statistics.mean(taken[part]) * 1e6:.0f} us"
            for part, words in PARTS.items() if taken[part]), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    _join_fake_world()
    tokens = torch.randint(0, 128, (1, 8))
    time_blocks(tokens)
    time_parts(tokens)
    os._exit(0)  # nothing waits for a fake world
