"""A model built without data, on a GPU that is not there."""
import torch


def on_stand_in(model, memory):
    """The parameters and buffers of a model on the meta device, on the GPU that is not there."""
    made = {}

    def real(t):
        if id(t) not in made:
            fake = torch.empty(t.shape, dtype=t.dtype, device="cuda")
            made[id(t)] = torch.nn.Parameter(fake, t.requires_grad) if isinstance(t, torch.nn.Parameter) else fake
        return made[id(t)]

    with memory:
        for module in model.modules():
            for held in (module._parameters, module._buffers):
                held.update({name: real(t) for name, t in held.items() if t is not None})
