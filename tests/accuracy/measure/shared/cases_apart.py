"""A process of its own for every case: what a case leaves behind, such as a fake world, stays out of the next one."""
import argparse
import os
import subprocess
import sys

from jobs import load_cases
from records import append_line


def _arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", help="a case list")
    parser.add_argument("--output", required=True, help="JSON-lines file to append records to")
    parser.add_argument("--account", action="store_true", help="also record what is alive at each phase's peak")
    parser.add_argument("--at-once", type=int, default=1, help="cases that run beside each other")
    parser.add_argument("--case", help="measure this one alone, here")
    return parser.parse_args()


def _show(record):
    m = record["measured"]
    phases = " ".join(f"{name}={value / 2**20:.1f}" for name, value in m["phases"].items())
    print(f"{record['name']} {phases} reserved={m['reserved'] / 2**20:.0f}", flush=True)


def run_apart(program, measure):
    """`program`: the file that calls this. `measure(case, with_account)` returns the case's record."""
    options = _arguments()
    cases = load_cases(options.cases)
    if options.case is not None:
        [chosen] = [case for case in cases if case["name"] == options.case]
        record = measure(chosen, options.account)
        append_line(options.output, record)
        _show(record)
        os._exit(0)  # nothing waits for a fake world
    command = [sys.executable, os.path.abspath(program), options.cases, "--output", options.output]
    command += ["--account"] * options.account
    for first in range(0, len(cases), options.at_once):
        group = cases[first:first + options.at_once]
        running = [subprocess.Popen([*command, "--case", case["name"]]) for case in group]
        for process in running:
            process.wait()
