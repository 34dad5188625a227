"""This process among the ranks torchrun started."""
import os

import torch
import torch.distributed as dist


def bind_device():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return rank, world, device


def line_up():
    """All ranks at the same point, with nothing queued on their devices."""
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
