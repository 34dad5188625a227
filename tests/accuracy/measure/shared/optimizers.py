"""A job's optimizer: PyTorch's by name and implementation, and those of other libraries."""
import torch

CLASSES = {
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "adafactor": torch.optim.Adafactor,
}
IMPLEMENTATIONS = {"fused": {"fused": True}, "foreach": {"foreach": True}, "for-loop": {"foreach": False}}
BITSANDBYTES = {
    "adamw_8bit": "AdamW8bit",
    "paged_adamw": "PagedAdamW",
    "paged_adamw_8bit": "PagedAdamW8bit",
    "lion": "Lion",
    "lamb": "LAMB",
}


def optimizer_arguments(job):
    options = dict(job["optimizer"])
    name = options.pop("name")
    arguments = dict(lr=1e-5, **IMPLEMENTATIONS[options.pop("implementation", "fused")], **options)
    return CLASSES[name], arguments


class MuonWithAdamW:
    """torch.optim.Muon for matrices inside the network, fused AdamW for the other parameters."""

    def __init__(self, named_parameters):
        named = [(n, p) for n, p in named_parameters if p.requires_grad]
        hidden = [p for n, p in named if p.ndim == 2 and "embed" not in n and "lm_head" not in n]
        chosen = {id(p) for p in hidden}
        self.parts = [
            torch.optim.Muon(hidden, lr=1e-5),
            torch.optim.AdamW([p for _, p in named if id(p) not in chosen], lr=1e-5, fused=True),
        ]

    def step(self):
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none=True):
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)


def make_bitsandbytes(job, model, parameters):
    import bitsandbytes

    if job["optimizer"].get("embeddings_32bit"):  # as HF Trainer does
        manager = bitsandbytes.optim.GlobalOptimManager.get_instance()
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                manager.register_module_override(module, "weight", {"optim_bits": 32})
    return getattr(bitsandbytes.optim, BITSANDBYTES[job["optimizer"]["name"]])(parameters, lr=1e-5)


def make_optimizer(job, parameters, model=None):
    """`model`: what optimizers need that go by names or modules."""
    name = job["optimizer"]["name"]
    if name == "muon":
        return MuonWithAdamW(model.named_parameters())
    if name in BITSANDBYTES:
        return make_bitsandbytes(job, model, parameters)
    if name == "adamw_4bit":
        from torchao.optim import AdamW4bit

        return AdamW4bit(parameters, lr=1e-5)
    if name == "soap":  # soap.py of github.com/nikhilvyas/SOAP, on PYTHONPATH
        from soap import SOAP

        return SOAP(parameters, lr=1e-5)
    cls, arguments = optimizer_arguments(job)
    return cls(parameters, **arguments)
