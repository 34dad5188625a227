"""Sizes of the states that optimizers make, by running their own code on two CPU ranks.

    pip install torch==2.11.0 bitsandbytes==0.50.2 torchao deepspeed==0.19.6
    DS_ACCELERATOR=cpu torchrun --nproc-per-node 2 measure.py adamw muon --output .

writes NAME.json for each name: for every way in which a framework hands parameters to the optimizer the
bytes of each block of its states, or what it stopped with. SOAP's soap.py (github.com/nikhilvyas/SOAP)
must be on PYTHONPATH. Of the DeepSpeed runs the engine is the real one; its gradients come from a loss.
"""
import argparse
import json
import os
import warnings

import torch
import torch.distributed as dist

warnings.filterwarnings("ignore")

MODELS = {
    "mixed": [(1000, 96), (400, 96), (96, 400), (129, 50)],
    # DeepSpeed's Muon gathers a bucket's matrices in one call, which gloo does only for equal shapes.
    "square": [(1000, 128), (128, 128), (128, 128), (128, 128)],
}
FUSED = ("adamw", "adam", "muon")  # their counts of steps are on the GPU
DTYPES = {"fp32": torch.float32, "bf16-pure": torch.bfloat16}


class Net(torch.nn.Module):
    def __init__(self, shapes):
        super().__init__()
        embed, up, down, odd = shapes
        self.embed = torch.nn.Embedding(*embed)
        self.up = torch.nn.Linear(up[1], up[0])
        self.down = torch.nn.Linear(down[1], down[0])
        self.norm = torch.nn.LayerNorm(down[0])
        self.odd = torch.nn.Linear(odd[1], odd[0], bias=False)
        self.lm_head = torch.nn.Linear(embed[1], embed[0], bias=False)

    def forward(self, ids):
        h = self.norm(self.down(self.up(self.embed(ids))))
        return self.lm_head(h).float().square().mean() + self.odd(h[..., : self.odd.in_features]).float().mean()


def special(name, p):  # what torch.optim.Muon is given
    return p.ndim == 2 and "embed" not in name and "lm_head" not in name


class Both:
    def __init__(self, *optimizers):
        self.optimizers = optimizers
        self.state = {}

    def step(self):
        for o in self.optimizers:
            o.step()
            self.state.update(o.state)


def make(name, named):
    parameters = [p for _, p in named]
    if name == "muon":
        rest = [p for n, p in named if not special(n, p)]
        return Both(torch.optim.Muon([p for n, p in named if special(n, p)]), torch.optim.AdamW(rest, fused=True))
    torch_classes = {
        "adamw": lambda: torch.optim.AdamW(parameters, fused=True),
        "adam": lambda: torch.optim.Adam(parameters, fused=True),
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        "adagrad": lambda: torch.optim.Adagrad(parameters),
        "adafactor": lambda: torch.optim.Adafactor(parameters),
    }
    if name in torch_classes:
        return torch_classes[name]()
    if name == "adamw_4bit":
        from torchao.optim import AdamW4bit

        return AdamW4bit(parameters)
    if name == "adafactor_transformers":  # as its Trainer sets it up (trainer_optimizer.py)
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=1e-5, scale_parameter=False, relative_step=False)
    if name == "soap":
        from soap import SOAP

        return SOAP(parameters)
    import bitsandbytes as bnb

    classes = {
        "adamw_8bit": bnb.optim.AdamW8bit,
        "paged_adamw": bnb.optim.PagedAdamW,
        "paged_adamw_8bit": bnb.optim.PagedAdamW8bit,
        "lion": bnb.optim.Lion,
        "lamb": bnb.optim.LAMB,
    }
    return classes[name](parameters)


def blocks(value):
    """Bytes of the tensors in one state, on this rank."""
    if isinstance(value, (list, tuple)):
        return [size for v in value for size in blocks(v)]
    if not isinstance(value, torch.Tensor):
        return []
    value = getattr(value, "_local_tensor", value)
    if hasattr(value, "codes"):  # torchao: codes, scales, the table of what codes mean
        return [size for part in (value.codes, value.scale, value.qmap) for size in blocks(part)]
    return [value.numel() * value.element_size()]


def sizes(optimizer, fused):
    """Blocks of all states. Counts of steps are on the GPU only with a fused kernel; tables that all
    tensors share are left out."""
    skipped = ("qmap1", "qmap2") if fused else ("qmap1", "qmap2", "step")
    found = [size for state in optimizer.state.values() for k, v in state.items() if k not in skipped for size in blocks(v)]
    return sorted(size for size in found if size > 0)


def steps(loss_of, step, times=2):
    for _ in range(times):
        loss_of().backward()
        step()


def run(what, record):
    """`what`() measures; a stop is recorded, on all ranks alike."""
    try:
        record["ranks"] = what()
    except Exception as stop:  # noqa: BLE001
        record["stops"] = f"{type(stop).__name__}: {str(stop).splitlines()[0][:160]}"
    return record


def gathered(found):
    all_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(all_ranks, found)
    return all_ranks


def separate(name, precision, model):
    def what():
        net = Net(MODELS[model]).to(DTYPES[precision])
        optimizer = make(name, list(net.named_parameters()))
        steps(lambda: net(torch.randint(0, 1000, (2, 8))), optimizer.step)
        return [sizes(optimizer, name in FUSED)]

    return run(what, {"framework": {"name": "single"}, "precision": precision, "model": model})


def sharded(name, precision, model):
    from torch.distributed.fsdp import fully_shard

    def what():
        net = Net(MODELS[model]).to(DTYPES[precision])
        fully_shard(net)
        optimizer = make(name, list(net.named_parameters()))
        steps(lambda: net(torch.randint(0, 1000, (2, 8))), optimizer.step)
        return gathered(sizes(optimizer, name in FUSED))

    return run(what, {"framework": {"name": "fsdp2"}, "precision": precision, "model": model})


DEEPSPEED = {"sgd": ("SGD", {"momentum": 0.9}), "adagrad": ("Adagrad", {}), "adafactor": ("Adafactor", {}), "muon": ("Muon", {})}


def deepspeed_engine(name, model, zero, accumulate=None):
    import deepspeed

    ds_type, arguments = DEEPSPEED[name]
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": zero, "reduce_scatter": False},
        "zero_allow_untested_optimizer": True,
        "optimizer": {"type": ds_type, "params": {"lr": 1e-3, **arguments}},
    }
    if accumulate:
        config["data_types"] = {"grad_accum_dtype": accumulate}

    def what():
        torch.manual_seed(0)
        net = Net(MODELS[model])
        engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
        for _ in range(2):
            engine.backward(engine(torch.randint(0, 1000, (2, 8))))
            engine.step()
        return gathered(sizes(getattr(engine.optimizer, "optimizer", engine.optimizer), False))

    return run(what, {"framework": {"name": "deepspeed", "ds_config": config}, "precision": "bf16-master", "model": model})


def measure(name):
    runs = []
    for precision in DTYPES:
        runs.append(separate(name, precision, "mixed"))
    runs.append(sharded(name, "fp32", "mixed"))
    if name in DEEPSPEED:
        model = "square" if name == "muon" else "mixed"
        runs += [deepspeed_engine(name, model, zero) for zero in (0, 1, 2, 3)]
        if name == "muon":
            runs.append(deepspeed_engine(name, model, 1, "fp32"))
    return runs


def versions():
    import importlib.metadata as metadata

    return {p: metadata.version(p) for p in ("torch", "bitsandbytes", "torchao", "deepspeed")}


def parameters(shapes):
    return [[n, list(p.shape)] for n, p in Net(shapes).named_parameters()]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="+")
    arguments.add_argument("--output", default=".")
    options = arguments.parse_args()
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    dist.init_process_group("gloo")
    for name in options.names:
        record = {"optimizer": name, "versions": versions(), "models": {m: parameters(s) for m, s in MODELS.items()}, "runs": measure(name)}
        if dist.get_rank() == 0:
            with open(os.path.join(options.output, f"{name}.json"), "w") as file:
                json.dump(record, file, indent=1)
                file.write("\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
