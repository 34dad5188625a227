"""Steps of HF Trainer as a user's script runs them, every case in processes of its own, beside what was predicted.

    python hf_trainers/run_trainer.py cases/trainers.json cases/fused.json --output trainers.jsonl

Records (shardplan.record/1) are appended as cases end; a case that has one is left out, so that the same command goes
on where it was stopped. A case that fails or takes too long is reported, its last lines shown, and the next one runs.
The table beside predictions/LIST.json (predict.py, made before the runs) comes last.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import gate
import host_probe
from jobs import load_cases, world_of

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIGURES = ("allocated_peak", "reserved", "device", "step_seconds")
LIBRARIES = ("accelerate", "peft", "trl", "liger-kernel", "bitsandbytes", "torchao", "deepspeed", "triton")


def _arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+", help="case lists")
    parser.add_argument("--output", required=True, help="JSON-lines file to append records to")
    parser.add_argument("--seconds", type=float, default=1e9, help="end after this many seconds")
    parser.add_argument("--case-seconds", type=float, default=150, help="end a case that takes longer")
    parser.add_argument("--warm", type=int, default=0, help="run all compiled cases once before, so many at a time, and drop "
                        "what they measure: torch.compile then finds its kernels in its cache")
    parser.add_argument("--alone", action="store_true", help="import a case's libraries when the one before has ended, not "
                        "while it runs: host times without that beside them")
    parser.add_argument("--ahead", type=int, default=1, help="so many cases import their libraries before their turn; as many "
                        "as there are: nothing is imported beside a step")
    parser.add_argument("--only", nargs="+", help="these cases alone")
    parser.add_argument("--case", help="measure this one, in this process")
    return parser.parse_args()


def versions():
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            pass
    return found


def measure_case(case, output):
    """In a process of its own; `training_arguments` before the model: ZeRO-3 builds it in pieces.

    `env` of a case is set before anything reads it.
    """
    os.environ.update(case.get("env", {}))
    import torch
    import torch.distributed as dist
    from transformers import TrainingArguments

    from environment import environment
    from models import parameter_counts
    from records import append_line, make_record
    from trainer_arguments import training_arguments
    from trainer_model import build
    from trainer_step import host_bytes, measure

    by_trl = case["job"].get("trainer") == "trl"
    if by_trl:
        from trl_step import measure as measure_trl
    if "ds_config" in case["job"].get("framework", {}):
        import deepspeed  # noqa: F401
    gate.wait()
    rank, device = int(os.environ.get("RANK", 0)), torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    with tempfile.TemporaryDirectory() as folder:
        said = training_arguments(case, folder, case.get("steps", 6))
        arguments = TrainingArguments(**said)
        calls = host_probe.calls()  # after the process group: all ranks at once, as they will train
        before = host_bytes()
        config, model = build(case, device)
        if by_trl:
            mine, timing = measure_trl(model, said, case["job"], rank, before, lambda: build(case, device)[1])
        else:
            mine, timing = measure(model, arguments, config, case["job"], rank, before)
    mine["host"] = calls
    ranks = [mine]
    if dist.is_initialized():
        ranks = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, mine)
    if rank == 0:
        about = {**environment(**versions()), "machine": host_probe.machine()}
        record = make_record(case, "run_trainer.py", about, parameter_counts(model), ranks, timing)
        del said["output_dir"]
        append_line(output, {**record, "training_arguments": said})
    os._exit(0)  # nothing waits for what libraries leave running


def _records(path):
    """By the case's name; failures are not among them."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return {record["name"]: record for record in found if "error" not in record}


def _command(case, path, output, program=None):
    """`program`: the one that measures a case; else the one that runs here."""
    here = [os.path.abspath(program or sys.argv[0]), path, "--output", output, "--case", case["name"]]
    if case["job"].get("framework", {"name": "single"})["name"] == "single":
        return [sys.executable, *here]
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            str(world_of(case["job"])), *here]


def _visible(case):
    """As many GPUs as the case's job has: on a machine with more, HF Trainer would spread one process over them all.
    Of those that this program was given, if it was."""
    given = [one for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if one] or map(str, range(world_of(case["job"])))
    return {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(list(given)[:world_of(case["job"])])}


def _start(path, case, options):
    """The case's processes, which wait once everything is imported."""
    return gate.Gated(_command(case, path, options.output), HERE, _visible(case))


def _last_lines(words):
    """What went wrong, which a launcher's own words may follow, and the end."""
    lines = words.strip().splitlines()
    wrong = [number for number, line in enumerate(lines) if "Error" in line][:1]
    return [line for number in wrong for line in lines[max(0, number - 10):number + 1]] + lines[-6:]


def _run(started, case, options, seconds):
    """Lets a started case run for at most `seconds`; what went wrong is shown and noted in the output."""
    gate.wait_for_empty_gpus()
    started.open()
    try:
        started.process.wait(seconds)
        ended = "failed" if started.process.returncode else ""
    except subprocess.TimeoutExpired:
        ended = f"ended after {seconds:.0f} s"
    if ended:
        started.end()
    lines = _last_lines(started.words())
    started.close()
    if case["name"] in _records(options.output):
        return
    print(f"{case['name']}: {ended or 'left no record'}", *lines, sep="\n  ", flush=True)
    with open(options.output, "a", encoding="utf-8") as file:
        file.write(json.dumps({"name": case["name"], "error": " | ".join([ended, *lines[-3:]])[-600:]}) + "\n")


def _end(process):
    """The case's processes, which are a session of their own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _warm(wanted, options):
    """Nobody looks at how these runs end: a case that fails does so again when it is measured."""
    waiting = [_command(case, path, os.devnull) for path, case in wanted
               if case["job"].get("compile") and "TORCHINDUCTOR_FORCE_DISABLE_CACHES" not in case.get("env", {})]
    running = []
    deadline = time.time() + options.seconds / 2
    while (waiting or running) and time.time() < deadline:
        while waiting and len(running) < options.warm:
            running.append(subprocess.Popen(waiting.pop(0), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=HERE,
                                            start_new_session=True))
        time.sleep(0.5)
        running = [process for process in running if process.poll() is None]
    for process in running:
        _end(process)


def _shown(figure, ours, theirs):
    if figure == "step_seconds":
        return f"{figure} {ours * 1e3:.1f} | {theirs * 1e3:.1f} ms {100 * (ours - theirs) / theirs:+.1f} %"
    return f"{figure} {ours / 2**20:.0f} | {theirs / 2**20:.0f} MiB {100 * (ours - theirs) / theirs:+.2f} %"


def _show(case, record, predicted):
    if record is None:
        return print(f"{case['name']}: no record")
    measured = record["measured"]
    if predicted is None or "refused" in predicted:
        return print(case["name"], predicted, {figure: measured[figure] for figure in FIGURES})
    print(f"{case['name']} (predicted | measured)")
    print("  " + ", ".join(_shown(figure, predicted[figure], measured[figure]) for figure in FIGURES))
    both = [(name, predicted["phases"][name], measured["phases"][name]) for name in measured["phases"]
            if name in predicted["phases"]]
    print("  " + " ".join(f"{name} {ours / 2**20:.0f}|{theirs / 2**20:.0f}" for name, ours, theirs in both))


def _predictions(path):
    beside = os.path.join(HERE, "predictions", os.path.basename(path))
    if not os.path.exists(beside):
        return {}
    with open(beside, encoding="utf-8") as file:
        return json.load(file)


def main(measure=measure_case):
    options = _arguments()
    options.output = os.path.abspath(options.output)
    lists = [(os.path.abspath(path), load_cases(path)) for path in options.cases]
    wanted = [(path, case) for path, cases in lists for case in cases if not options.only or case["name"] in options.only]
    if options.case is not None:
        [chosen] = [case for _, case in wanted if case["name"] == options.case]
        measure(chosen, options.output)
    print("machine", json.dumps(host_probe.machine()), flush=True)
    begin = time.time()
    waiting = [(path, case) for path, case in wanted if case["name"] not in _records(options.output)]
    importing = [] if options.alone else [_start(path, case, options) for path, case in waiting[:options.ahead]]
    if options.warm:
        _warm(waiting, options)
        print(f"{time.time() - begin:6.0f} s warm", flush=True)
    for number, (path, case) in enumerate(waiting):
        started = importing.pop(0) if importing else _start(path, case, options)
        left = options.seconds - (time.time() - begin)
        coming = [] if options.alone else waiting[number + 1 + len(importing):number + 1 + options.ahead]
        importing += [_start(*one, options) for one in coming if left >= 10]
        if left < 10:
            started.end()
            break
        _run(started, case, options, min(left, options.case_seconds))
        print(f"{time.time() - begin:6.0f} s {case['name']}", flush=True)
    for started in importing:
        started.end()
    records = _records(options.output)
    for path, case in wanted:
        _show(case, records.get(case["name"]), _predictions(path).get(case["name"]))


if __name__ == "__main__":
    main()
