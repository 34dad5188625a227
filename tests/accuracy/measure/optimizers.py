"""PyTorch's optimizers by the job's name and implementation."""
import torch

CLASSES = {
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "adafactor": torch.optim.Adafactor,
}
IMPLEMENTATIONS = {"fused": {"fused": True}, "foreach": {"foreach": True}, "for-loop": {"foreach": False}}


def optimizer_arguments(job):
    options = dict(job["optimizer"])
    name = options.pop("name")
    arguments = dict(lr=1e-5, **IMPLEMENTATIONS[options.pop("implementation")], **options)
    return CLASSES[name], arguments


def make_optimizer(job, parameters):
    cls, arguments = optimizer_arguments(job)
    return cls(parameters, **arguments)
