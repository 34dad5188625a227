"""What is alive at the peak of each phase, by the line of code that allocated it.

One more step runs with the allocator's history on; replaying its events gives the live blocks at each phase's peak.
Blocks older than the step are one line, "before the step". Sizes are those asked for, before the allocator's rounding.
"""
import re

import torch

PACKAGE = re.compile(r"/((?:deepspeed|transformers|peft|megatron|transformer_engine)/.*)$")
TORCH = re.compile(r"/(torch/(?:optim|distributed|nn/parallel|nn/utils|utils)/.*)$")
SMALLEST = 2**20
LINES = 14


def _where(frames):
    for pattern in (PACKAGE, TORCH):
        for frame in frames:
            found = pattern.search(frame["filename"])
            if found:
                return f"{found.group(1)}:{frame['line']} {frame['name']}"
    return "autograd" if not frames else "program"


def _phase_of(time_us, marks):
    for phase, end in marks:
        if time_us <= end:
            return phase
    return marks[-1][0]


def _peak_indices(events, marks, start_bytes):
    """Index of the event after which each phase's live bytes are largest (of its last occurrence)."""
    live, best = start_bytes, {}
    previous = None
    for index, event in enumerate(events):
        if event["action"] == "alloc":
            live += event["size"]
        elif event["action"] == "free_requested":
            live -= event["size"]
        else:
            continue
        phase = _phase_of(event["time_us"], marks)
        if phase != previous:
            best[phase] = (-1, index)
            previous = phase
        if live > best[phase][0]:
            best[phase] = (live, index)
    return best


def _account_at(events, index, start_bytes):
    blocks, older = {}, start_bytes
    for event in events[:index + 1]:
        if event["action"] == "alloc":
            blocks[event["addr"]] = (event["size"], event.get("frames", ()))
        elif event["action"] == "free_requested":
            if blocks.pop(event["addr"], None) is None:
                older -= event["size"]
    groups = {}
    for size, frames in blocks.values():
        line = groups.setdefault(_where(frames), {"bytes": 0, "blocks": 0})
        line["bytes"] += size
        line["blocks"] += 1
    lines = [{"where": "before the step", "bytes": older, "blocks": 0}]
    kept = sorted(groups.items(), key=lambda item: -item[1]["bytes"])
    small = sum(line["bytes"] for _, line in kept[LINES:])
    lines += [{"where": where, **line} for where, line in kept[:LINES] if line["bytes"] >= SMALLEST]
    small += sum(line["bytes"] for _, line in kept[:LINES] if line["bytes"] < SMALLEST)
    return lines + [{"where": "smaller ones", "bytes": small, "blocks": 0}]


def record_account(step, recorder):
    torch.cuda.synchronize()
    start_bytes = torch.cuda.memory_allocated()
    torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="python", max_entries=2_000_000,
                                             clear_history=True)
    try:
        step()
        torch.cuda.synchronize()
        events = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    events = sorted(events, key=lambda event: event["time_us"])
    peaks = _peak_indices(events, recorder.marks, start_bytes)
    return {phase: {"live_bytes": live, "lines": _account_at(events, index, start_bytes)}
            for phase, (live, index) in peaks.items()}
