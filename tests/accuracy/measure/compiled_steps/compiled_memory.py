"""The memory of a compiled step on a GPU that is not there: storages without data, counted while they live.

Every tensor is a fake one. `Memory` counts their storages, in the allocator's units of 512 bytes, whoever makes them:
eager operations, autograd, or the wrappers that Inductor writes, which are run as they are with kernels that do
nothing. What holds a storage is Python's and autograd's own affair, as on a GPU."""
import contextlib
import re
import types
import weakref

import torch
import torch._inductor.compile_fx as compile_fx
from torch._inductor.graph import GraphLowering
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves


class Memory:
    """Fake tensors whose storages are counted: `live` and `peak` bytes. Operators have rules for PyTorch's own mode
    alone, so that a mode of this class's would not do."""

    def __init__(self):
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.mode.memory = self
        self.live = self.peak = 0
        self.alive = {}  # by storage: its bytes, its first tensor's shape and type
        self.at_peak = {}  # what was alive then

    def __enter__(self):
        return self.mode.__enter__()

    def __exit__(self, *error):
        return self.mode.__exit__(*error)

    def watch(self, made):
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda":
                self._add(tensor)
        return made

    def _add(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.alive:
            return
        size = -(-storage.nbytes() // 512) * 512
        self.alive[key] = size, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        self.live += size
        if self.live > self.peak:
            self.peak, self.at_peak = self.live, dict(self.alive)
        weakref.finalize(storage, self._drop, key)

    def _drop(self, key):
        self.live -= self.alive.pop(key)[0]

    def summary(self, before=(), at_peak=False):
        """[[bytes, shape, type, count]] of storages that live, or lived at the peak, and are not in `before`, the
        largest first."""
        found = {}
        for key, what in (self.at_peak if at_peak else self.alive).items():
            if key not in before:
                found[what] = found.get(what, 0) + 1
        return [[size, list(shape), dtype, count]
                for (size, shape, dtype), count in sorted(found.items(), key=lambda row: -row[0][0] * row[1])]


_dispatch = FakeTensorMode.__torch_dispatch__


# What a step asks of values on the GPU, and what a real one answers: labels are counted, gradients of losses are not one.
ANSWERS = {torch.ops.aten._local_scalar_dense.default: 1, torch.ops.aten.equal.default: False}


def _watched(mode, func, types, args=(), kwargs=None):
    memory = getattr(mode, "memory", None)
    if memory and func in ANSWERS:
        # Comparisons do not hold: OPT leaves out the layers whose random number is below a chance of 0.
        return False if args[0].dtype == torch.bool else ANSWERS[func]
    if memory and func.namespace == "bitsandbytes" and func._opname in EIGHT_BITS:
        with mode:
            return EIGHT_BITS[func._opname](*args)
    made = _dispatch(mode, func, types, args, kwargs)
    return memory.watch(made) if memory else made


def _empty(shape, dtype):
    return torch.empty(shape, dtype=dtype, device="cuda")


def _to_eight_bits(x, *_):
    """bitsandbytes/backends/cuda/ops.py, int8_vectorwise_quant, of an input without outliers."""
    made = _empty(x.numel() // x.shape[-1], torch.float32), _empty(x.shape, torch.int8)
    looked_at = _empty(x.shape, torch.float16), _empty(x.shape, torch.bool)
    del looked_at
    return made[1], made[0], _empty(0, torch.int64)


def _product_of_eight_bits(x, narrow, weight, *_):
    """The same, int8_mixed_scaled_mm."""
    shape = *narrow.shape[:-1], weight.shape[0]
    sums, half = _empty(shape, torch.int32), _empty(shape, torch.float16)
    del sums
    return (half if x.dtype == torch.float16 else _empty(shape, x.dtype)), None


# Operators whose results' sizes only values tell: Dynamo leaves them out, and they have no rule.
EIGHT_BITS = {"int8_vectorwise_quant": _to_eight_bits, "int8_mixed_scaled_mm": _product_of_eight_bits}

FakeTensorMode.__torch_dispatch__ = torch._dynamo.disable(_watched)


class Nothing:
    """Any kernel: it is launched, and changes no memory."""

    def __init__(self, launches, kind):
        self.launches, self.kind = launches, kind

    def __call__(self, *args, **named):
        self.launches[self.kind] = self.launches.get(self.kind, 0) + 1

    run = __call__

    def __getattr__(self, name):
        return Nothing(self.launches, self.kind)

    def __getitem__(self, grid):
        return self


class Operators:
    """torch.ops in a wrapper: run as they are, on tensors without data; what writes to `out` does nothing."""

    def __init__(self, launches, target, name=""):
        self.launches, self.target, self.name = launches, target, name

    def __getattr__(self, name):
        return Operators(self.launches, getattr(self.target, name), name if name != "default" else self.name)

    def __call__(self, *args, **named):
        self.launches[self.name] = self.launches.get(self.name, 0) + 1
        return named["out"] if "out" in named else self.target(*args, **named)


def _names(memory, launches):
    """What the text of a wrapper refers to."""
    cuda = types.SimpleNamespace(_DeviceGuard=lambda i: contextlib.nullcontext(), set_device=lambda i: None,
                                 synchronize=lambda: None)
    dtypes = {n: v for n, v in vars(torch).items() if isinstance(v, torch.dtype)}
    kernel = lambda *args, **named: Nothing(launches, "triton")
    return dict(
        torch=types.SimpleNamespace(cuda=cuda, ops=Operators(launches, torch.ops), device=torch.device,
                                    as_strided=torch.as_strided, **dtypes),
        aten=Operators(launches, torch.ops.aten), inductor_ops=Operators(launches, torch.ops.inductor), device=torch.device,
        assert_size_stride=lambda *a: None, assert_alignment=lambda *a: None, get_raw_stream=lambda i: 0,
        extern_kernels=Nothing(launches, "extern"), inf=float("inf"), nan=float("nan"), alloc_from_pool=None,
        empty_strided_cuda=lambda shape, stride, dtype: torch.empty_strided(shape, stride, dtype=dtype, device="cuda"),
        reinterpret_tensor=lambda b, shape, stride, offset=0: torch.as_strided(b, shape, stride, offset),
        async_compile=types.SimpleNamespace(triton=kernel, wait=lambda g: None), run_intermediate_hooks=None)


def call_of(source, memory, launches):
    """The function `call` of a wrapper, with kernels that do nothing."""
    start = "async_compile = AsyncCompile()"
    body = source[source.index(start) + len(start):]
    body = body[:body.index("\ndef get_args")] if "\ndef get_args" in body else body[:body.index("\ndef benchmark")]
    body = re.sub(r"^empty_strided_p2p.*$", "", body, flags=re.M)
    names = _names(memory, launches)
    exec(body, names)
    return names["call"]


class Compiler:
    """A backend of torch.compile that stops where Inductor has written its wrapper, and runs that one."""

    def __init__(self, memory):
        self.memory, self.graphs, self.launches = memory, [], {}
        self.original = compile_fx.compile_fx_inner

    def __call__(self, graph, inputs):
        return compile_fx.compile_fx(graph, inputs, inner_compile=self._inner)

    def _inner(self, graph, inputs, **named):
        """In place of compile_fx_inner."""
        lower, found = GraphLowering.codegen, []

        class Written(Exception):
            pass

        def stop(lowering):
            code = lower(lowering)[0]
            found.append(code.value if hasattr(code, "value") else str(code))
            raise Written

        GraphLowering.codegen = stop
        try:
            unwritten = self.original(graph, inputs, **named)
        except Exception:
            if not found:
                raise
        finally:
            GraphLowering.codegen = lower
        if not found:  # a graph that computes nothing
            return unwritten
        backward = bool(named.get("is_backward"))
        self.graphs.append(dict(source=found[0], backward=backward))
        call = call_of(found[0], self.memory, self.launches)
        count = len(next(n for n in graph.graph.nodes if n.op == "output").args[0])

        def run(arguments):
            with torch.no_grad(), self.memory:
                results = call(arguments)
            assert len(results) == count
            return list(results)

        run._boxed_call = True
        return run
