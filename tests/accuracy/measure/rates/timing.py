"""Time of a piece of GPU work without the cost of launching it: captured once as a CUDA graph of several repetitions
and replayed, so that even microsecond kernels are timed by the GPU alone."""
import torch

TARGET_SECONDS = 0.02


def _elapsed(run, times):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def gpu_seconds(work, graphed=True):
    """Median over five timings of one call of `work`."""
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    inner, run = 1, work
    if graphed:
        rough = max(_elapsed(work, 1), 1e-6)
        inner = max(1, min(50, int(TARGET_SECONDS / 5 / rough)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(inner):
                work()
        run = graph.replay
        run()
        torch.cuda.synchronize()
    once = max(_elapsed(run, 1), 1e-6)
    repeats = max(1, min(20, int(TARGET_SECONDS / 5 / once)))
    samples = sorted(_elapsed(run, repeats) / repeats / inner for _ in range(5))
    return samples[2]
