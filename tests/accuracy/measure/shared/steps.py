"""Runs a few training steps through a Trainer and measures the last one.

A Trainer has forward(batch, last) -> loss, backward(loss, last), step() and zero_grad(); `last` says whether this is
the micro-batch at which gradient accumulation completes. With MEASURE_PROFILE in the environment a step more runs under
the profiler.
"""
import os
import time

import torch

import profiled
from account import record_account
from host_sample import HostSamples
from phases import PhaseRecorder, memory_now

STEPS = 9
WARM_UP = 2


class PlainUpdate:
    """step() and zero_grad() of a Trainer with `job`, `parameters` and `optimizer`."""

    def clip(self):
        if self.job["gradient_clipping"]:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.job["gradient_clipping"])

    def step(self):
        self.clip()
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad(set_to_none=True)


def _one_step(trainer, batch, accumulation, recorder):
    recorder.begin()
    for micro in range(accumulation):
        last = micro == accumulation - 1
        loss = trainer.forward(batch, last)
        recorder.end("forward")
        trainer.backward(loss, last)
        recorder.end("backward")
    trainer.step()
    trainer.zero_grad()
    recorder.end("step")
    return loss.detach()


def time_steps(step, synchronize, sample=lambda: None):
    """(seconds of each step, what each gave); `synchronize` lines the ranks up before each, `sample` comes before it."""
    seconds, results = [], []
    for _ in range(STEPS):
        torch.cuda.synchronize()
        sample()
        synchronize()
        start = time.perf_counter()
        result = step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        results.append(float(result))
        del result
    return seconds, results


def timing_of(seconds, losses):
    """As a record says it: the median of the steps after the warm-up."""
    steady = sorted(seconds[WARM_UP:])
    return {"step_seconds": steady[len(steady) // 2], "steps": seconds, "losses": losses}


def _profile(step):
    """Of one more step; the second under the profiler, whose first prepares it."""
    for _ in range(2):
        torch.cuda.synchronize()
        profiler = profiled.start()
        step()
        taken = profiled.stop(profiler)
    return taken


def run_steps(trainer, batch, job, synchronize, with_account):
    """One rank's measurements of steady-state steps."""
    accumulation = job["workload"]["gradient_accumulation"]
    recorder, samples, host_steps = PhaseRecorder(), HostSamples(torch.device("cuda", torch.cuda.current_device())), []
    model_bytes = torch.cuda.memory_allocated()

    def step():
        loss = _one_step(trainer, batch, accumulation, recorder)
        host_steps.append(recorder.host)
        return loss

    seconds, losses = time_steps(step, synchronize, samples.take)
    phases = {"model": model_bytes, **recorder.values}
    peak = max(phases["forward_peak"], phases["backward_peak"], phases["step_peak"])
    rank = {"phases": phases, "allocated_peak": peak, "whole_step_peak": recorder.whole_peak, **memory_now(),
            "host_samples": samples.taken}
    if "MEASURE_PROFILE" in os.environ:
        rank["profile"] = _profile(step)
    if with_account:
        rank["account"] = record_account(step, recorder)
    return rank, {**timing_of(seconds, losses), "host_steps": host_steps[:STEPS]}
