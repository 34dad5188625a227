"""Runs a measuring program and keeps what its caching allocator did in the cases whose names end with `-history`.

    python profiles/allocator_history.py cases/LIST.json --output FILE   (HF Trainer, as run_trainer.py)
    torchrun --nproc-per-node 2 profiles/allocator_history.py run_deepspeed.py cases/LIST.json --output FILE

Each such case leaves FOLDER/NAME.json.xz ($MEASURE_HISTORY, `history`), of rank 0: `events`, one list an event of
[action, address, bytes, stream, microseconds, where], `where` naming a row of `frames`, the innermost Python functions;
`marks`, where each phase ended. Streams are numbered as they are met. The recording takes time on the host.
"""
import json
import lzma
import os
import runpy
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import gate
import phases
import runner

DEPTH = 7  # functions of a stack, the innermost first


class History:
    def __init__(self):
        self.marks = []

    def start(self):
        torch.cuda.init()
        torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="python", clear_history=True)

    def mark(self, what):
        self.marks.append([what, time.time_ns() // 1000])

    def write(self, name):
        torch.cuda.synchronize()
        events = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        torch.cuda.memory._record_memory_history(enabled=None)
        rows, streams, frames = [], {}, {}
        for event in events:
            where = " < ".join(os.path.basename(f["filename"])[:-3] + ":" + f["name"]
                               for f in (event.get("frames") or [])[:DEPTH])
            rows.append([event["action"], event.get("addr", 0), event["size"],
                         streams.setdefault(event["stream"], len(streams)), event["time_us"],
                         frames.setdefault(where, len(frames))])
        folder = os.environ.get("MEASURE_HISTORY", "history")
        os.makedirs(folder, exist_ok=True)
        with lzma.open(os.path.join(folder, name + ".json.xz"), "wt", preset=4) as file:
            json.dump({"name": name, "marks": self.marks, "frames": list(frames), "events": rows}, file)


def wanted(name):
    return name.endswith("-history") and os.environ.get("RANK", "0") == "0"


def watch_loops(history):
    """Of the programs that have the steps in a loop: one process, all cases."""
    run_cases = runner.run_cases

    def run(program, measure, *given, **named):
        def kept(case, *rest):
            if not wanted(case["name"]):
                return measure(case, *rest)
            history.start()
            result = measure(case, *rest)
            history.write(case["name"])
            return result

        return run_cases(program, kept, *given, **named)

    runner.run_cases = run
    end = phases.PhaseRecorder.end

    def ended(recorder, phase):
        end(recorder, phase)
        history.mark(phase)

    phases.PhaseRecorder.end = ended


def measure_trainer(case, output):
    """A case of HF Trainer, in a process of its own that ends without cleaning up."""
    if wanted(case["name"]):
        import trainer_arguments
        import trainer_step

        history, leave = History(), os._exit
        arguments, meter_end = trainer_arguments.training_arguments, trainer_step.Meter.end

        def begin(*given):
            history.start()
            return arguments(*given)

        def ended(meter, phase):
            meter_end(meter, phase)
            history.mark(phase)

        def write_and_leave(status):
            history.write(case["name"])
            leave(status)

        trainer_arguments.training_arguments, trainer_step.Meter.end, os._exit = begin, ended, write_and_leave
    run_trainer.measure_case(case, output)


def wait_before_cases():
    """The processes are started at once; the first case waits until this program's own gate opens."""
    run = run_trainer._run

    def run_after(*given):
        gate.wait()
        run(*given)

    run_trainer._run = run_after


if __name__ == "__main__":
    if sys.argv[1].endswith(".py"):
        import transformers  # noqa: F401
        if "deepspeed" in sys.argv[1]:
            import deepspeed  # noqa: F401
        gate.wait()
        watch_loops(History())
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        import run_trainer
        if "--case" not in sys.argv:
            wait_before_cases()
        run_trainer.main(measure_trainer)
