"""The loop every measuring program shares: cases in, one JSON line per case out, a time limit, one process group.

A program gives `measure(case, device, with_account)`, which returns this rank's (counts, rank, timing): parameters as
`parameter_counts` gives them, what it measured of memory, how long it took. Cases already
named in the output file's progress list are left out, so that a program that died can be started again.
"""
import argparse
import gc
import json
import os
import time
import traceback

import torch
import torch.distributed as dist

import host_probe
from environment import environment
from jobs import load_cases, world_of
from leftovers import release_leftovers
from phases import clean, warm_libraries
from records import append_line, make_record


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+", help="case lists")
    parser.add_argument("--output", required=True, help="JSON-lines file to append records to")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after this many seconds")
    parser.add_argument("--most", type=int, help="start no more cases than this")
    parser.add_argument("--account", action="store_true", help="also record what is alive at each phase's peak")
    return parser.parse_args()


def _done(path):
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        return {json.loads(line) for line in file}


def _gather(value):
    if not dist.is_initialized():
        return [value]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


def _shown(record, seconds):
    m = record["measured"]
    phases = " ".join(f"{name}={value / 2**20:.0f}" for name, value in m["phases"].items())
    return (f"{record['name']} {phases} peak={m['allocated_peak'] / 2**20:.0f} "
            f"reserved={m['reserved'] / 2**20:.0f} device={m['device'] / 2**20:.0f} {_speed(record)} ({seconds:.1f}s)")


def _speed(record):
    m = record["measured"]
    if "prefill_seconds" in m:
        return f"prefill={m['prefill_seconds']:.4f}s decode={m['decode_tokens_per_second']:.1f} tokens/s"
    return f"step={m['step_seconds']:.4f}s loss={record['losses'][0]:.3f}..{record['losses'][-1]:.3f}"


def run_cases(program, measure, device, rank=0, world=1, **libraries):
    options = arguments()
    deadline = time.time() + options.seconds
    progress = options.output + ".progress"
    done = _done(progress)
    cases = [case for path in options.cases for case in load_cases(path) if case["name"] not in done][:options.most]
    warm_libraries(device)
    calls = host_probe.calls()
    about = environment(**libraries)
    if rank == 0:
        about["machine"] = host_probe.machine()
    gc.collect()
    gc.freeze()  # what is here now stays: collections between cases look only at what the cases made
    for case in cases:
        if world_of(case["job"]) != world:
            raise SystemExit(f"{case['name']} wants {world_of(case['job'])} ranks, there are {world}")
        if any(_gather(time.time() > deadline)):
            break
        if rank == 0:
            append_line(progress, case["name"])
        start = time.time()
        clean()
        before = torch.cuda.memory_allocated()
        try:
            # Every rank takes the account's extra step, or the ranks' collectives would no longer match.
            counts, mine, timing = measure(case, device, options.account)
        except Exception as error:  # the next case needs a fresh process: what failed may hold memory and hooks
            traceback.print_exc(limit=6)
            if rank == 0:
                append_line(options.output, {"name": case["name"], "error": repr(error)[:600]})
            os._exit(3)
        release_leftovers()
        clean()
        if rank != 0:
            mine.pop("account", None)
        mine = {"rank": rank, "allocated_before": before, "allocated_after": torch.cuda.memory_allocated(), **mine,
                "host": calls}
        ranks = _gather(mine)
        if rank == 0:
            record = make_record(case, program, about, counts, ranks, timing)
            append_line(options.output, record)
            print(_shown(record, time.time() - start), flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()
