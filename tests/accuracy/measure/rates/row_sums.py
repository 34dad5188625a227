"""Sums along rows and across them, and products that broadcast in several dimensions, as a state space in PyTorch's own
operations has them: seconds of each, behind a write that leaves nothing of its operands in the cache.

    python rates/row_sums.py OUTPUT
"""
import json
import sys

import torch

DEVICE, TURNS = "cuda", 5
ELEMENTS = 1 << 29
SCANS = ((1, 8), (1, 4), (2, 2))  # batch, chunks
TOKENS, HEADS, COLUMNS, STATE = 256, 48, 64, 128


class Timer:
    def __init__(self):
        self.rows, self.before = [], torch.empty(64 << 20, device=DEVICE)

    def time(self, about, call):
        call()
        torch.cuda.synchronize()
        taken = []
        for _ in range(TURNS):
            self.before.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            taken.append(start.elapsed_time(end) / 1e3)
        self.rows.append({**about, "seconds": sorted(taken)[TURNS // 2]})


def time_rows(timer):
    for elements in (ELEMENTS, ELEMENTS // 4, ELEMENTS // 16):
        for width in (8, 16, 32, 64, 128, 256, 512, 1024, 4096):
            x = torch.empty(elements // width, width, device=DEVICE)
            timer.time({"op": "sum of rows", "width": width, "elements": elements}, lambda: x.sum(-1))
            del x


def time_scan(timer, batch, chunks):
    """l and s: places of a chunk; h: heads, p: a head's columns, n: the state."""
    def made(*shape):
        return torch.randn(batch, chunks, *shape, device=DEVICE)

    b, c, x = made(TOKENS, HEADS, STATE), made(TOKENS, HEADS, STATE), made(TOKENS, HEADS, COLUMNS)
    weights, states = made(TOKENS, TOKENS, HEADS), made(HEADS, COLUMNS, STATE)
    for name, call, sums in (
            ("lshn", lambda: c[:, :, :, None] * b[:, :, None], {"l": 2, "s": 3, "n": 5}),
            ("lshp", lambda: weights[..., None] * x[:, :, None], {"l": 2, "s": 3, "p": 5}),
            ("lhpn", lambda: b[..., None, :] * x[..., None], {"l": 2, "p": 4, "n": 5}),
            ("lhpn of states", lambda: c[..., None, :] * states[:, :, None], {})):
        whole = call()
        about = {"of": name, "batch": batch, "chunks": chunks, "elements": whole.numel()}
        for over, dimension in sums.items():
            timer.time({"op": "sum over " + over, **about}, lambda: whole.sum(dimension))
        del whole
        timer.time({"op": "product", **about}, call)


if __name__ == "__main__":
    timer = Timer()
    time_rows(timer)
    for scan in SCANS:
        time_scan(timer, *scan)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"schema": "shardplan.row_sums/1", "producer": {"program": "tests/accuracy/measure/rates/row_sums.py"},
                   "environment": {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}, "rows": timer.rows}, file, indent=1)
