"""One rank of a world that is not there, in one process on one GPU.

PyTorch's fake process group: collectives and transfers allocate what they allocate and send nothing. What a rank holds
is what it would hold among the others; values that pass between ranks mean nothing, and neither does time.
"""
import os

import torch
import torch.distributed as dist


def join_fake_world(rank, world):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update(RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE=str(world), MASTER_ADDR="localhost",
                      MASTER_PORT="29500")
    torch.cuda.set_device(0)
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
