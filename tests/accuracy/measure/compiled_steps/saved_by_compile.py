"""What torch.compile keeps between the passes of a training step, and the peaks of both: no GPU needed.

usage: python compiled_steps/saved_by_compile.py CASES.json OUT.json [NAME...]

A case: {"name", "config" (Hugging Face's), "head" ("causal_lm" or "mlm"), "dtype", "autocast", "batch", "length",
"checkpointing" (as jobs say it), "linear" ("fp8-rowwise": torchao's), "kernels" ("liger"), "scope" ("block": layer by
layer, the rest is eager), "lora" ({"rank", "targets"}: peft's, over linears in nf4, or as they are where its
"quantization" is "none", or in LLM.int8() where it is "int8"), "bucket_bytes" (graphs are cut as under DDP), "pads" (so are rows that are not aligned, as
where that is found faster), "trainer" (autocast, and what the model returns in fp32, as accelerate wraps a model), "amp" (false: a
Trainer's in fp32, which accelerate does not wrap), "accumulation" (micro-batches a step: the highest of their peaks, and the last one's
ends)}. Dynamo, AOTAutograd with its min-cut partitioner and Inductor's scheduler run as they are,
on tensors without data (stand_in_gpu.py); the wrappers that Inductor writes are then run with kernels that do nothing
(compiled_memory.py). What a second step allocates beyond parameters and the batch is counted. With
KEEP_WRAPPERS=FOLDER the wrappers' sources are written there."""
import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from stand_in_gpu import stand_in

stand_in()
import torch

from checkpointing import arguments as checkpointing_arguments, checkpoints, enable
from compilation import compile_model
from compiled_memory import Compiler, Memory
from placed import on_stand_in
from stand_in_adapters import in_eight_bits, in_four_bits, pack, pack_eight, with_adapters


def model_of(case, memory):
    import transformers.models.auto.modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = dict(case["config"])
    config = CONFIG_MAPPING[config.pop("model_type")](**config, use_cache=False)
    kind = auto.AutoModelForMaskedLM if case.get("head") == "mlm" else auto.AutoModelForCausalLM
    with torch.device("meta"):
        model = kind.from_config(config).to(getattr(torch, case.get("dtype", "bfloat16")))
    lora = case.get("lora")
    stored = "none" if lora is None else lora.get("quantization", "nf4")
    if stored != "none":
        in_eight_bits(model) if stored == "int8" else in_four_bits(model)
    if lora is not None:
        model = with_adapters(model, lora, None if case.get("head") == "mlm" else "CAUSAL_LM")
    on_stand_in(model, memory)
    if stored != "none":
        pack_eight(model, memory) if stored == "int8" else pack(model, memory)
    checkpoint(case, model)
    if lora is not None and stored == "none" and checkpoints(policy_of(case)):
        model.enable_input_require_grads()
    if case.get("kernels") == "liger":
        from liger_kernel.transformers import _apply_liger_kernel_to_instance

        _apply_liger_kernel_to_instance(model=model.get_base_model() if lora is not None else model)
    if "linear" in case:
        from float8 import convert

        convert(model, {"precision": {"linear": case["linear"]}})
    return model.train()


def policy_of(case):
    policy = case.get("checkpointing", "none")
    return {"checkpointing": "full" if policy is True else policy}


def told(case):
    """Whether frozen embeddings are told to need a gradient: the graph breaks there, and the head and the loss are a
    graph of their own."""
    return case.get("lora") is not None and checkpoints(policy_of(case))


def warns(model):
    """Whether transformers warns that it does not know the loss, where the graph breaks: the loss is one of its own."""
    return getattr(model, "loss_type", None) is None


def checkpoint(case, model):
    job = policy_of(case)
    if not checkpoints(job):
        return
    if checkpointing_arguments(job) is None:
        enable(job, model)
    else:
        said = dict(checkpointing_arguments(job))
        apart = {key: said.pop(key) for key in ("every_n_layers", "offload") if key in said}  # as Trainer does
        model.gradient_checkpointing_enable(said, **apart)


def compiled(case, model, compiler):
    if case.get("amp", True) and (case.get("autocast") or case.get("trainer")):
        model.forward = torch.amp.autocast("cuda", dtype=torch.bfloat16)(model.forward)
    if case.get("trainer"):
        from accelerate.utils import convert_outputs_to_fp32

        model.forward = convert_outputs_to_fp32(model.forward)
    if "bucket_bytes" in case:
        from torch._dynamo.backends.distributed import DDPOptimizer

        compiler = DDPOptimizer(case["bucket_bytes"], compiler, 2**20).compile_fn
    how = {"scope": case["scope"]} if "scope" in case else True
    if how is True:
        return compile_model(model, {"compile": how}, backend=compiler)
    # An eager model leaves the causal mask out where no token is padding, which it asks the tokens: there are none here.
    modeling = sys.modules[type(model).__module__]
    for name in ("create_causal_mask", "create_sliding_window_causal_mask"):
        if hasattr(modeling, name):
            setattr(modeling, name, lambda **said: None)
    return compile_model(model, {"compile": how}, backend=compiler)


@contextlib.contextmanager
def numbers_on_stand_in():
    """torch.tensor would fill a number in on the GPU; Liger's loss compares its gradient with one, and masks of
    attention that is written out are made of zeros."""
    real = torch.tensor

    def made(value, device=None, dtype=None, **rest):
        if isinstance(value, (int, float)):
            return torch.full((), value, device=device, dtype=dtype)
        return real(value, device=device, dtype=dtype, **rest)

    torch.tensor = made
    try:
        yield
    finally:
        torch.tensor = real


def run_micro_batch(model, batch, memory, launches, whole, before, base):
    """Bytes beyond what was there before."""
    report = {}

    def begin():
        launches.clear()
        memory.peak = memory.live

    def end(phase):
        report.update({phase + "_peak": memory.peak - base, phase + "_end": memory.live - base,
                       phase + "_kernels": dict(launches), phase + "_most": memory.summary(before, at_peak=True)})

    begin()
    with memory, numbers_on_stand_in():
        output = model(**batch)
    # The logits of a model in one graph live until the backward pass is over, as measured with HF Trainer on GPUs; a
    # copy in fp32 does not.
    loss, held = output.loss, output.logits if whole else None
    del output
    end("forward")
    report["saved"] = memory.summary(before)
    begin()
    with memory, numbers_on_stand_in():
        loss.backward()
    del loss, held
    end("backward")
    return report


def run_step(model, batch, memory, launches, whole, micro_batches):
    """Peaks are the highest, all else is the last micro-batch's."""
    before, base = set(memory.alive), memory.live
    step = {}
    for _ in range(micro_batches):
        report = run_micro_batch(model, batch, memory, launches, whole, before, base)
        step = {**report, **{key: max(report[key], step.get(key, 0)) for key in report if key.endswith("_peak")}}
    return step


def replay(case):
    """The second of two steps: the first one compiles."""
    memory = Memory()
    compiler = Compiler(memory)
    torch._inductor.config.shape_padding = torch._inductor.config.force_shape_pad = bool(case.get("pads"))
    model = compiled(case, model_of(case, memory), compiler)
    with memory:
        ids = torch.zeros(case["batch"], case["length"], dtype=torch.int64, device="cuda")
        batch = dict(input_ids=ids, labels=ids.clone(), num_items_in_batch=torch.zeros((), dtype=torch.int64, device="cuda"))
    for _ in range(2):
        for parameter in model.parameters():
            parameter.grad = None
        whole = not case.get("trainer") and case.get("amp", True) and case.get("scope") != "block" and not told(case) and not warns(model)
        report = run_step(model, batch, memory, compiler.launches, whole, case.get("accumulation", 1))
    return compiler.graphs, report


def keep_wrappers(case, graphs):
    folder = os.environ.get("KEEP_WRAPPERS")
    for number, graph in enumerate(graphs if folder else ()):
        name = f"{case['name']}.{number}.{'backward' if graph['backward'] else 'forward'}.py"
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(graph["source"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases, wanted, done = json.load(file), sys.argv[3:], []
    for case in cases:
        if wanted and case["name"] not in wanted:
            continue
        with torch.autograd.set_multithreading_enabled(False):
            graphs, report = replay(case)
        keep_wrappers(case, graphs)
        done.append(dict(case=case, graphs=len(graphs), **report))
        print(case["name"], len(graphs), *(f"{k} {v:,}" for k, v in report.items() if isinstance(v, int)), flush=True)
        with open(sys.argv[2], "w", encoding="utf-8") as out:
            out.write("[\n" + ",\n".join(json.dumps(row) for row in done) + "\n]\n")


main()
