"""Frees what a case leaves behind: a ZeRO-3 engine stays alive after destroy(), its tensors and all."""
import gc
import warnings

import torch

LARGE = 2**20


def release_leftovers():
    """Empties the storage of every large tensor made since gc.freeze(): nothing reads them between cases."""
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for item in gc.get_objects():
            if type(item) in (torch.Tensor, torch.nn.Parameter) and item.layout == torch.strided and not item.is_meta:
                storage = item.untyped_storage()
                if storage.nbytes() >= LARGE and storage.resizable():
                    storage.resize_(0)
