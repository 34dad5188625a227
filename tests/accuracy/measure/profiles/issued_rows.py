"""A step's kernels beside the calls that issued them, as rows of a file: what the GPU waited for can be told from them.

With MEASURE_ROWS=FOLDER beside MEASURE_PROFILE the profiler looks at the GPU and at CUDA's calls alone, which slows the
host far less than looking at operations does, and every rank writes a file, whose name its profile says:

base                        of the first row: nanoseconds since 1970
names                       what kernels and calls are called; `name` is an index of them
gpu_*, host_*               begin and seconds (ns since the first), correlation (the call of a kernel has the same), name;
                            of a kernel the stream too, of a call its thread
"""
import os

import numpy
import torch

CORRELATED = ("cuda", "cu")


def folder():
    return os.environ.get("MEASURE_ROWS")


def write(events):
    """The file's name."""
    names, sides, start = {}, {"gpu": [], "host": []}, min((event.start_ns() for event in events), default=0)
    for event in events:
        on_gpu = event.device_type() == torch.autograd.DeviceType.CUDA
        if event.is_user_annotation() or not (on_gpu or event.name().startswith(CORRELATED)):
            continue
        place = event.device_resource_id() if on_gpu else event.start_thread_id()
        sides["gpu" if on_gpu else "host"].append(
            (event.start_ns() - start, event.duration_ns(), event.correlation_id(), place,
             names.setdefault(event.name()[:120], len(names))))
    columns = {"base": numpy.int64(start), "names": numpy.array(list(names))}
    for side, rows in sides.items():
        table = numpy.array(sorted(rows), dtype=numpy.int64).reshape(-1, 5)
        for number, column in enumerate(("begin", "seconds", "correlation", "place", "name")):
            columns[f"{side}_{column}"] = table[:, number]
    os.makedirs(folder(), exist_ok=True)
    file = f"{os.getpid()}-rank{os.environ.get('RANK', 0)}.npz"
    numpy.savez_compressed(os.path.join(folder(), file), **columns)
    return file
