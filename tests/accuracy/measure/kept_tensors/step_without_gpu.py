"""One job's steps of HF Trainer on tensors without data: bytes of the GPU at each phase, without a GPU.

    python kept_tensors/step_without_gpu.py JOBS.json OUT.jsonl

JOBS.json is a case list of jobs with `"trainer": "hf_trainer"` on one GPU that are not compiled. The model, the training
arguments, the trainer and its meter are those that run_trainer.py measures with; PyTorch, transformers, peft, accelerate
and Liger run as they are; storages are given to PyTorch's allocator (caching_allocator.py). Stood in for, as no kernel runs:

* what libraries allocate inside of kernels: kernel_memory.py;
* values that the step asks for: value_of below;
* gradients that autograd adds in place: sums_in_place below;
* linears in four bits: stand_in_adapters.py; optimizers of bitsandbytes: their updates do nothing.

Left to others: linears in eight bits, fp8, activations that TRL's hooks move, images.
"""
import json
import os
import sys
import tempfile
import traceback
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from stand_in_gpu import stand_in

os.environ["PYTORCH_JIT"] = "0"  # what is scripted would ask the GPU itself
stand_in()
import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils.data import dataloader

import compiled_memory
import kernel_memory
from caching_allocator import CachingAllocator
from compiled_memory import Memory
from placed import on_stand_in
from stand_in_adapters import in_four_bits, pack

aten = torch.ops.aten
STEPS = 2  # the second finds the optimizer's states


class Allocated(Memory):
    """Bytes as PyTorch's allocator counts them."""

    def __init__(self):
        super().__init__()
        self.allocator, self.given, self.libraries = CachingAllocator(), {}, {}

    def _add(self, tensor):
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.given or size == 0:
            return
        self.given[key] = self.allocator.give(size)
        self.alive[key] = self.given[key][0].size, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        weakref.finalize(storage, self._drop, key)
        self.count()

    def _drop(self, key):
        self.alive.pop(key)
        self.allocator.take_back(self.given.pop(key))
        self.live = self.allocator.allocated

    def count(self):
        self.live = self.allocator.allocated
        if self.live > self.peak:
            self.peak, self.at_peak = self.live, dict(self.alive)

    def passing(self, size):
        """Bytes of a kernel, while it runs."""
        given = self.allocator.give(size)
        self.count()
        self.allocator.take_back(given)
        self.live = self.allocator.allocated


EQUAL = {aten.all.default, aten.eq.Tensor, aten.eq.Scalar}
COMPARED = {aten.lt.Scalar, aten.le.Scalar, aten.ge.Scalar, aten.gt.Scalar}


def value_of(tensor, holds):
    """What a step asks of values that are not there. Of floats: an optimizer's steps are on the host, what overflowed
    is on the GPU. Labels are counted."""
    if tensor.dtype == torch.bool:
        return holds
    if tensor.dtype.is_floating_point:
        return 1.0 if tensor.device.type == "cpu" else 0.0
    return 1


def holds(func, args):
    """Whether a comparison does: no token is padding, every label is a word, no number is drawn below a chance of 0."""
    return func in EQUAL or func in COMPARED and not args[0].dtype.is_floating_point


# Products into a tensor that is there, which have no rule but a sum of products, in fp32.
INTO_OUT = {aten.addmm.out, aten.addmm.dtype_out, aten.mm.out, aten.mm.dtype_out}


def sums_in_place(old, new, *_):
    """Whether autograd adds a gradient to one that nobody else holds, which it does not where tensors are not PyTorch's
    own (torch/csrc/autograd/input_buffer.cpp). Counted are the references that this call itself has too."""
    inside = torch._C._current_graph_task_id() != -1 and not torch.is_grad_enabled()
    if not inside or not isinstance(new, torch.Tensor) or old.shape != new.shape or old.dtype != new.dtype:
        return False
    return old._use_count() == 4 and torch._C._storage_Use_Count(old.untyped_storage()._cdata) == 2


def watch_steps():
    """Beside what Memory watches: values that are asked for, and bytes that kernels allocate."""
    watched, held = compiled_memory.FakeTensorMode.__torch_dispatch__, {}

    def dispatch(mode, func, types, args=(), kwargs=None):
        memory = getattr(mode, "memory", None)
        if memory and func is aten._local_scalar_dense.default:
            return value_of(args[0], held.get(id(args[0]), False))
        if memory and func in INTO_OUT:
            return kwargs["out"]
        if memory and func is aten.add.Tensor and sums_in_place(*args):
            return args[0]
        made = watched(mode, func, types, args, kwargs)
        if memory:
            kernel_memory.beside(memory, func, args, made)
            if isinstance(made, torch.Tensor) and made.dtype == torch.bool:
                held[id(made)] = holds(func, args)
        return made

    compiled_memory.FakeTensorMode.__torch_dispatch__ = torch._dynamo.disable(dispatch)


def on_data():
    """Loaders and samplers are outside of the mode; what they give has no data any more."""
    plain = dataloader._BaseDataLoaderIter.__next__, dataloader.DataLoader.__iter__

    def following(self):
        with unset_fake_temporarily():
            batch = plain[0](self)
        return {name: torch.empty(values.shape, dtype=values.dtype) for name, values in batch.items()}

    def iterate(self):
        with unset_fake_temporarily():
            return plain[1](self)

    dataloader._BaseDataLoaderIter.__next__, dataloader.DataLoader.__iter__ = following, iterate


def answer_libraries():
    """What libraries ask PyTorch, Python's or the GPU's runtime, and take for a trace where tensors have no data."""
    from transformers import PreTrainedModel
    from transformers.utils import import_utils

    PreTrainedModel.warn_if_padding_and_no_attention_mask = lambda *given: None
    import_utils.is_fake_tensor = lambda tensor: False
    made = torch.tensor

    def tensor(value, device=None, dtype=None, **rest):
        if not isinstance(value, (int, float)):
            return made(value, device=device, dtype=dtype, **rest)
        return torch.full((), value, device=device, dtype=dtype)

    torch.tensor = tensor
    for module in (sys.modules["torch.optim.optimizer"], torch.utils._foreach_utils):
        module._foreach_supported_types.append(FakeTensor)
    torch.nn.Module.to = lambda self, *given, **named: self  # it is where it should be


def few_bits(job):
    """How bitsandbytes' linears store their values, and whether the scales are quantized too."""
    values, _, scales = job["workload"].get("lora", {}).get("quantization", "nf4").partition("_")
    return values, scales == "double"


def answer_bitsandbytes():
    """Paged states are the driver's, and no kernel updates any."""
    import bitsandbytes.functional as own
    import peft.tuners.lora.dora as dora
    import trainer_model

    def quantized(job, config, device, stored):
        model = trainer_model.plain_model(job, config, torch.bfloat16, device)
        in_four_bits(model, *few_bits(job))
        return model

    trainer_model._quantized = quantized
    def widened(linear):
        weight = linear.weight
        return own.dequantize_4bit(weight.data, weight.quant_state) if hasattr(weight, "quant_state") else weight

    dora.dequantize_module_weight = widened  # peft's asks for a class that tensors without data cannot have
    own.get_paged = lambda *shape, dtype, device: torch.empty(*shape, dtype=dtype)
    for name in ("fill", "prefetch_tensor", "optimizer_update_32bit", "optimizer_update_8bit_blockwise"):
        setattr(own, name, lambda *given, **named: None)


def measure(case, memory):
    import trainer_step
    from transformers import TrainingArguments

    from trainer_arguments import training_arguments
    from trainer_model import build

    def now():
        return memory.peak, memory.live, 0

    def reset():
        memory.peak = memory.live

    trainer_step.allocator_now, trainer_step.WARM_UP = now, STEPS - 1
    torch.cuda.memory_allocated = lambda *given: memory.live
    torch.cuda.reset_peak_memory_stats = lambda *given: reset()
    torch.cuda.mem_get_info = lambda *given: (0, 0)
    trainer_step._replays_graphs = lambda job: True  # no sample of the host
    with tempfile.TemporaryDirectory() as folder, memory:
        arguments = TrainingArguments(**training_arguments(case, folder, STEPS))
        with unset_fake_temporarily(), torch.device("meta"):
            config, model = build({**case, "built_on": "meta"}, torch.device("meta"))
        on_stand_in(model, memory)
        pack(model, memory, *few_bits(case["job"]))
        mine, _ = trainer_step.measure(model, arguments, config, case["job"], 0, 0)
    return mine["phases"]


def row_of(case):
    try:
        with torch.autograd.set_multithreading_enabled(False):
            row = {"phases": measure(case, Allocated())}
    except Exception as error:
        traceback.print_exc()
        row = {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"name": case["name"], "job": case["job"], **row}


def main():
    """A process for each case, as Liger patches PyTorch's own functions; libraries are imported before."""
    import liger_kernel.transformers  # noqa: F401
    import transformers.models.auto.modeling_auto  # noqa: F401

    import trainer_step  # noqa: F401
    from jobs import load_cases

    answer_libraries()
    watch_steps()
    on_data()
    answer_bitsandbytes()
    for case in load_cases(sys.argv[1]):
        if os.fork() == 0:
            row = row_of(case)
            with open(sys.argv[2], "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    main()
