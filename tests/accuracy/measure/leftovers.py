"""Frees what a case leaves behind: a ZeRO-3 engine stays alive after destroy(), its tensors and all."""
import gc
import warnings

import torch

LARGE = 2**20


def large_storages():
    """{address: storage} of every tensor of at least a MiB that Python can still reach."""
    gc.collect()
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for item in gc.get_objects():
            if type(item) in (torch.Tensor, torch.nn.Parameter) and item.layout == torch.strided and not item.is_meta:
                storage = item.untyped_storage()
                if storage.nbytes() >= LARGE:
                    found[storage.data_ptr()] = storage
    return found


def release_new(known):
    """Empties the storages that were not there before the case; only for tensors nothing will read again."""
    for address, storage in large_storages().items():
        if address not in known and storage.resizable():
            storage.resize_(0)
