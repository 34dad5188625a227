"""What torch.compile keeps between the passes of a training step, and the peaks of both: no GPU needed.

usage: python saved_by_compile.py CASES.json OUT.json [NAME...]

A case: {"name", "config" (Hugging Face's), "head" ("causal_lm" or "mlm"), "dtype", "autocast", "batch", "length"}.
Dynamo, AOTAutograd with its min-cut partitioner and Inductor's scheduler run as they are, on tensors without data
(stand_in_gpu.py). The wrappers that Inductor writes are then run with kernels that do nothing: what they allocate
and drop is counted in units of 512 bytes. Parameters are left out. `backward_peak` has what AOTAutograd is given
for results without a gradient: zeros, as large as the logits. They and the logits live until the backward pass is over.
With KEEP_WRAPPERS=FOLDER the wrappers' sources are written there."""
import json
import os
import re
import sys
import types

from stand_in_gpu import stand_in

stand_in()
import torch
import torch._inductor.compile_fx as compile_fx
from torch._inductor.graph import GraphLowering
from torch._subclasses.fake_tensor import FakeTensorMode

mode = FakeTensorMode(allow_non_fake_inputs=True)


class Counter:
    def __init__(self):
        self.live = self.peak = 0
        self.kernels = {}

    def add(self, size):
        self.live += size
        self.peak = max(self.peak, self.live)

    def launch(self, kind):
        self.kernels[kind] = self.kernels.get(kind, 0) + 1


class Storage:
    def __init__(self, size, counter):
        self.size, self.counter = -(-size // 512) * 512, counter
        counter.add(self.size)

    def __del__(self):
        self.counter.live -= self.size


class Block:
    """A tensor as a wrapper sees it: a shape and a reference to its storage."""

    def __init__(self, shape, stride, dtype, storage):
        self.shape, self.strides, self.dtype, self.storage = tuple(shape), tuple(stride), dtype, storage

    @staticmethod
    def fresh(shape, stride, dtype, counter):
        elements = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride))
        return Block(shape, stride, dtype, Storage(elements * dtype.itemsize, counter))

    def fake(self):
        with mode:
            return torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device="cuda")

    def like(self, result, counter=None):
        if counter is None:
            return Block(result.shape, result.stride(), result.dtype, self.storage)
        return Block.fresh(result.shape, result.stride(), result.dtype, counter)

    def __getitem__(self, index):
        return self.like(self.fake()[index])

    def view(self, *shape):
        return self.like(self.fake().view(*shape))

    def sum(self, **kw):
        return self.like(self.fake().sum(**kw), self.storage.counter)

    def to(self, dtype):
        return self.like(self.fake().to(dtype), self.storage.counter)


class Nothing:
    """Any kernel: it is launched, and changes no memory."""

    def __init__(self, counter, kind):
        self.counter, self.kind = counter, kind

    def __call__(self, *a, **k):
        self.counter.launch(self.kind)

    run = __call__

    def __getattr__(self, name):
        return Nothing(self.counter, name)


class Operators:
    """torch.ops in a wrapper: its results are new tensors."""

    def __init__(self, counter, target=torch.ops, name=""):
        self.counter, self.target, self.name = counter, target, name

    def __getattr__(self, name):
        return Operators(self.counter, getattr(self.target, name), name if name != "default" else self.name)

    def __call__(self, *args, **kw):
        self.counter.launch(self.name)
        if "out" in kw:  # seeds of dropout: written to a tensor that is there
            return kw["out"]
        fakes = [a.fake() if isinstance(a, Block) else a for a in args]
        with mode:
            out = self.target(*fakes, **kw)
        wrap = lambda t: Block.fresh(t.shape, t.stride(), t.dtype, self.counter) if isinstance(t, torch.Tensor) else t
        return tuple(wrap(t) for t in out) if isinstance(out, (tuple, list)) else wrap(out)


def wrapper_of(source, counter):
    """The function `call` of a wrapper, with kernels that do nothing."""
    body = source[source.index("async_compile = AsyncCompile()") + len("async_compile = AsyncCompile()"):]
    body = body[:body.index("\ndef get_args")]
    body = re.sub(r"^empty_strided_p2p.*$", "", body, flags=re.M)
    cuda = types.SimpleNamespace(_DeviceGuard=lambda i: __import__("contextlib").nullcontext(), set_device=lambda i: None, synchronize=lambda: None)
    types_of_torch = {n: v for n, v in vars(torch).items() if isinstance(v, torch.dtype)}
    names = dict(torch=types.SimpleNamespace(cuda=cuda, ops=Operators(counter), **types_of_torch), aten=Operators(counter, torch.ops.aten), inductor_ops=Operators(counter, torch.ops.inductor),
                 assert_size_stride=lambda *a: None, assert_alignment=lambda *a: None, get_raw_stream=lambda i: 0, extern_kernels=Nothing(counter, "extern"),
                 empty_strided_cuda=lambda shape, stride, dtype: Block.fresh(shape, stride, dtype, counter),
                 reinterpret_tensor=lambda b, shape, stride, offset=0: Block(shape, stride, b.dtype, b.storage),
                 async_compile=types.SimpleNamespace(triton=lambda name, *a, **k: Nothing(counter, "triton"), wait=lambda g: None), inf=float("inf"), nan=float("nan"))
    exec(body, names)
    return names["call"]


graphs = []


class Written(Exception):
    pass


def inner_compile(graph, inputs, **kw):
    """In place of compile_fx_inner: keeps the wrapper's source, and returns results without data."""
    lower = GraphLowering.codegen

    def stop(self):
        code = lower(self)[0]
        found.append(code.value if hasattr(code, "value") else str(code))
        raise Written

    found = []
    GraphLowering.codegen = stop
    try:
        original(graph, inputs, **kw)
    except Exception:
        if not found:
            raise
    finally:
        GraphLowering.codegen = lower
    results = next(n for n in graph.graph.nodes if n.op == "output").args[0]
    places = [(n.name, n.meta.get("val")) for n in graph.graph.nodes if n.op == "placeholder"]
    graphs.append(dict(source=found[0], backward=bool(kw.get("is_backward")), inputs=places,
                       outputs=[(r.name, r.meta["val"]) if isinstance(r, torch.fx.Node) else None for r in results]))

    def run(args):
        with mode:
            return [None if o is None else torch.empty_strided(o[1].shape, o[1].stride(), dtype=o[1].dtype, device="cuda") for o in graphs[-1 if kw.get("is_backward") else 0]["outputs"]]
    run._boxed_call = True
    return run


original = compile_fx.compile_fx_inner


def model_of(case):
    """A model without data, on the GPU that is not there."""
    import transformers.models.auto.modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    config = dict(case["config"])
    config = CONFIG_MAPPING[config.pop("model_type")](**config, use_cache=False)
    kind = auto.AutoModelForMaskedLM if case.get("head") == "mlm" else auto.AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(config).to(getattr(torch, case.get("dtype", "bfloat16")))
    made = {}

    def real(t):
        if id(t) not in made:
            fake = torch.empty(t.shape, dtype=t.dtype, device="cuda")
            made[id(t)] = torch.nn.Parameter(fake) if isinstance(t, torch.nn.Parameter) else fake
        return made[id(t)]
    with mode:
        for module in model.modules():
            for held in (module._parameters, module._buffers):
                held.update({k: real(v) for k, v in held.items() if v is not None})
    if case.get("checkpointing"):
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train()


def compile_step(case):
    graphs.clear()
    torch._dynamo.reset()
    model = model_of(case)
    if case.get("autocast"):
        model.forward = torch.amp.autocast("cuda", dtype=torch.bfloat16)(model.forward)
    with mode:
        ids = torch.zeros(case["batch"], case["length"], dtype=torch.int64, device="cuda")
        step = torch.compile(model, backend=lambda g, i: compile_fx.compile_fx(g, i, inner_compile=inner_compile))
        step(input_ids=ids, labels=ids.clone(), num_items_in_batch=torch.zeros((), dtype=torch.int64, device="cuda"))
    return len(graphs)


def counted(blocks):
    """Tensors of a shape and a type, and how many."""
    found = {}
    for block in blocks:
        key = block.shape, str(block.dtype)[6:]
        found[key] = found.get(key, 0) + 1
    return [dict(shape=list(shape), dtype=dtype, count=count) for (shape, dtype), count in found.items()]


def replay():
    """Both wrappers one after the other: the allocations of a step."""
    forward = next(g for g in graphs if not g["backward"])
    backward = next(g for g in graphs if g["backward"])
    counter = Counter()
    outside = Counter()  # parameters and the batch
    outside_blocks = {}

    def given(name, value):
        if name not in outside_blocks:
            outside_blocks[name] = Block.fresh(value.shape, value.stride(), value.dtype, outside) if isinstance(value, torch.Tensor) else value
        return outside_blocks[name]
    results = list(wrapper_of(forward["source"], counter)([given(n, v) for n, v in forward["inputs"]]))
    read = {n for n, _ in backward["inputs"]}
    saved = {o[0]: r for o, r in zip(forward["outputs"], results) if o is not None and o[0] in read}
    returned = [o[0] for o in forward["outputs"] if o is not None]
    del results  # the caller drops the model's output when it has the loss
    report = dict(forward_peak=counter.peak, forward_end=counter.live, forward_kernels=dict(counter.kernels))
    report["saved"] = counted([b for b in saved.values() if isinstance(b, Block) and b.storage.counter is counter])
    tangents = {n: Block.fresh(v.shape, v.stride(), v.dtype, counter) for n, v in backward["inputs"] if n.startswith("tangents")}
    counter.peak, counter.kernels = counter.live, {}
    # autograd's node holds the gradients that it was called with, and what the model returns where it is kept.
    held = [list(tangents.values()), [saved[n] for n in returned[:len(tangents)] if n in saved]]
    args = [tangents[n] if n in tangents else saved[n] if n in saved else given(n, v) for n, v in backward["inputs"]]
    tangents.clear()
    saved.clear()
    gradients = wrapper_of(backward["source"], counter)(args)
    del held
    report.update(backward_peak=counter.peak, backward_end=counter.live, backward_kernels=dict(counter.kernels), gradients=len(gradients))
    return report


def main():
    cases, wanted, done = json.load(open(sys.argv[1])), sys.argv[3:], []
    for case in cases:
        if wanted and case["name"] not in wanted:
            continue
        with torch.autograd.set_multithreading_enabled(False):
            count = compile_step(case)
        if count != 2:
            print(case["name"], "left out: a graph break,", count, "graphs in place of a forward and a backward one", flush=True)
            continue
        if folder := os.environ.get("KEEP_WRAPPERS"):
            for graph in graphs:
                with open(os.path.join(folder, f"{case['name']}.{'backward' if graph['backward'] else 'forward'}.py"), "w") as out:
                    out.write(graph["source"])
        done.append(dict(case=case, graphs=count, **replay()))
        print(case["name"], count, *(f"{k} {done[-1][k]:,}" for k in ("forward_peak", "forward_end", "backward_peak", "backward_end")), flush=True)
        with open(sys.argv[2], "w") as out:
            out.write("[\n" + ",\n".join(json.dumps(report) for report in done) + "\n]\n")


main()
