"""Host memory of this process: resident set and what CUDA's pinned allocator holds."""
import ctypes
import gc

import psutil
import torch


def trim():
    """Gives freed host memory back, pinned too, so that a case starts from what is really in use."""
    gc.collect()
    torch._C._host_emptyCache()
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def host_now():
    statistics = torch.cuda.host_memory_stats()
    return {"resident": psutil.Process().memory_info().rss,
            "pinned_used": statistics.get("active_bytes.current", statistics.get("allocated_bytes.current", 0)),
            "pinned_held": statistics.get("allocated_bytes.current", 0)}


def host_delta(before, after):
    return {name: after[name] - before[name] for name in before}
