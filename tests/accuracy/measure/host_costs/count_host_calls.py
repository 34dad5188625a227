"""What a framework's own Python does for a block of a Llama: frames, C calls and operations of a step, without a GPU.

    python host_costs/count_host_calls.py fsdp2        plain, fsdp1, fsdp2, zero0 to zero3

One rank of two whose other rank is fake; sizes are small, and DeepSpeed's buckets and windows are as small beside them as
HF Trainer's "auto" makes them (`--bucket N`: reduce_bucket_size). Two depths are counted, and their difference is what one
block takes: 13 modules, 9 tensors. docs/explanation/time.md has the table.
"""
import argparse
import collections
import functools
import json
import os
import subprocess
import sys

HIDDEN, DEPTHS, WARM_UP = 64, (2, 6), 4
PHASES = ("forward", "backward", "step")
WINDOWS = {"stage3_prefetch_bucket_size": int(0.9 * HIDDEN**2), "stage3_param_persistence_threshold": 10 * HIDDEN,
           "stage3_max_reuse_distance": 5 * HIDDEN**2}


def _model(layers):
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(
        hidden_size=HIDDEN, intermediate_size=2 * HIDDEN, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=128, tie_word_embeddings=False, use_cache=False))


def _clip(model):
    import torch

    return torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


class Loop:
    """A plain loop's step; `clip` as the framework wants it."""

    def __init__(self, model, clip=_clip):
        import torch

        self.model, self.clip = model, clip
        self.optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def backward(self, loss):
        loss.backward()

    def step(self):
        self.clip(self.model)
        self.optimizer.step()
        self.optimizer.zero_grad()


class Engine:
    def __init__(self, model, stage, bucket, windows=None):
        import deepspeed
        import torch

        zero = {"stage": stage, "overlap_comm": True, "contiguous_gradients": True, "reduce_bucket_size": bucket}
        if stage == 3:
            zero |= WINDOWS if windows is None else windows
        config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": zero,
                  "gradient_clipping": 1.0, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False}
        self.model = deepspeed.initialize(
            model=model, model_parameters=list(model.parameters()), config=config, dist_init_required=False,
            optimizer=torch.optim.AdamW(model.parameters(), fused=True))[0]
        self.backward, self.step = self.model.backward, self.model.step


def _fsdp1(model):
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={type(model.model.layers[0])})
    wrapped = FullyShardedDataParallel(
        model, auto_wrap_policy=policy, use_orig_params=True, device_id=torch.device("cpu"),
        mixed_precision=MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16))
    return Loop(wrapped, lambda m: m.clip_grad_norm_(1.0))


def _fsdp2(model):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    said = {"mesh": init_device_mesh("cpu", (2,)), "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)}
    for block in model.model.layers:
        fully_shard(block, **said)
    fully_shard(model, **said)
    return Loop(model)


def _training(framework, layers, bucket):
    if framework.startswith("zero"):
        return Engine(_model(layers), int(framework[-1]), bucket)
    return {"plain": Loop, "fsdp1": _fsdp1, "fsdp2": _fsdp2}[framework](_model(layers))


def _phases(training, batch, around):
    with around("forward"):
        loss = training.model(input_ids=batch, labels=batch).loss
    with around("backward"):
        training.backward(loss)
    with around("step"):
        training.step()


class Frames:
    """Counts Python frames and C calls while it is entered."""

    def __init__(self, counts):
        self.counts = counts

    def __enter__(self):
        sys.setprofile(lambda frame, event, given: self.counts.update((event,)))

    def __exit__(self, *failure):
        sys.setprofile(None)


def count(framework, layers, bucket):
    """Frames, C calls and operations of each phase."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils._python_dispatch import TorchDispatchMode

    os.environ.update(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="localhost", MASTER_PORT="29511")
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    torch.set_num_threads(1)
    calls = {phase: collections.Counter() for phase in PHASES}

    class Operations(TorchDispatchMode):
        def __init__(self, phase):
            super().__init__()
            self.phase = phase

        def __torch_dispatch__(self, function, types, given=(), named=None):
            calls[self.phase]["operations"] += 1
            return function(*given, **(named or {}))

    training, batch = _training(framework, layers, bucket), torch.randint(0, 128, (1, 8))
    for _ in range(WARM_UP):
        _phases(training, batch, lambda phase: torch.enable_grad())
    _phases(training, batch, lambda phase: Frames(calls[phase]))
    _phases(training, batch, Operations)
    return {phase: [calls[phase][what] for what in ("call", "c_call", "operations")] for phase in PHASES}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("framework")
    parser.add_argument("--bucket", type=int, default=HIDDEN**2)
    parser.add_argument("--layers", type=int, help="print what this depth takes")
    options = parser.parse_args()
    if options.layers:
        print(json.dumps(count(options.framework, options.layers, options.bucket)))
        os._exit(0)  # nothing waits for a fake world
    few, many = (json.loads(subprocess.check_output(
        [sys.executable, __file__, options.framework, "--bucket", str(options.bucket), "--layers", str(depth)],
        text=True).splitlines()[-1]) for depth in DEPTHS)
    for phase in PHASES:
        block = [(b - a) / (DEPTHS[1] - DEPTHS[0]) for a, b in zip(few[phase], many[phase])]
        print(f"{phase}: {block[0]:.0f} frames, {block[1]:.0f} C calls, {block[2]:.0f} operations a block")


if __name__ == "__main__":
    main()
