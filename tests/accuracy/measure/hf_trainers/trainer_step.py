"""A few steps of HF Trainer, measured by its own callbacks: one rank's phases, peaks and seconds.

Peaks are those from the third step on, when optimizer states exist; phases those of the last step's last micro-batch.
With MEASURE_PROFILE in the environment the last step is in none of these: it runs under the profiler.
"""
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback

import gate
import profiled
import stage3_parts
from host_sample import HostSamples
from image_samples import RandomImages, RandomPairs, collate, collate_pairs
from models import PAIRS
from phases import allocator_now

WARM_UP = 2


class RandomTokens(Dataset):
    """4,096 samples of random tokens, whose labels are the tokens."""

    def __init__(self, vocabulary, length):
        self.vocabulary, self.length = vocabulary, length

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        made = torch.randint(0, self.vocabulary, (self.length,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": made, "labels": made.clone()}


class Meter(TrainerCallback):
    """Reads the allocator at the ends of phases; `whole` is the largest peak since the warm-up."""

    def __init__(self):
        self.phases, self.seconds, self.whole, self.reserved = {}, [], 0, 0
        self.host_steps = []
        self.profiler = None
        self.profile = {}
        self.watch = None  # of an engine beside the trainer: trl_engine.Watch
        self.samples = HostSamples(torch.device("cuda", torch.cuda.current_device()))
        self.sampled = True

    def issued(self, phase):
        """The host has started all of a phase; what it waited for within is in it."""
        now = time.perf_counter()
        if self.host_steps:
            self.host_steps[-1][phase] = self.host_steps[-1].get(phase, 0) + now - self.last

    def end(self, phase):
        if phase != "step":
            self.issued(phase)
        peak, after, reserved = allocator_now()
        self.phases[phase + "_peak"], self.phases[phase + "_end"] = peak, after
        self.whole = max(self.whole, peak)
        self.reserved = max(self.reserved, reserved)
        if self.watch:
            self.watch.note(phase, time.perf_counter() - self.last)
        torch.cuda.reset_peak_memory_stats()
        self.last = time.perf_counter()

    def _meets_others(self):
        """An engine in a single process makes a group of one rank, which nothing else opens: a barrier's communicator
        takes 494 MiB."""
        return self.watch is None or dist.get_world_size() > 1

    def on_train_begin(self, args, state, control, **rest):
        self.phases["model"] = torch.cuda.memory_allocated()

    def on_step_begin(self, args, state, control, **rest):
        if state.global_step == WARM_UP:
            gate.wait_for_turn()
        torch.cuda.synchronize()
        if self.sampled and state.global_step >= WARM_UP:  # a sample multiplies in autograd's thread, which the first step has to do itself
            self.samples.take()
        if dist.is_initialized() and self._meets_others():
            dist.barrier()  # ranks are not done with their samples at once
            torch.cuda.synchronize()
        if state.global_step == WARM_UP:
            self.whole = self.reserved = 0
        torch.cuda.reset_peak_memory_stats()
        if "MEASURE_PROFILE" in os.environ and state.global_step == state.max_steps - 1:
            self.device = device_now()
            self.profiler = profiled.start()
            self.parts = stage3_parts.Parts() if "MEASURE_STAGE3" in os.environ else None
        self.cpu, self.began = time.process_time(), time.time_ns()
        self.host_steps.append({})
        self.begin = self.last = time.perf_counter()

    def on_step_end(self, args, state, control, **rest):
        self.issued("step")
        torch.cuda.synchronize()
        self.seconds.append(time.perf_counter() - self.begin)
        self.host_steps[-1]["process_seconds"] = time.process_time() - self.cpu
        if self.profiler is not None:
            self.profile = {**profiled.stop(self.profiler), "step_seconds": self.seconds.pop(),
                            "began_ns": self.began, "host_step": self.host_steps.pop()}
            if self.parts is not None:
                self.profile["stage3_parts"] = self.parts.stop()
            return
        self.end("step")

    def on_train_end(self, args, state, control, **rest):
        if self.profiler is None:  # which holds memory of its own on the GPU
            self.device = device_now()
        if "MEASURE_SEGMENTS" in os.environ and os.environ.get("RANK", "0") == "0":
            write_segments(os.environ["MEASURE_SEGMENTS"])


def device_now():
    free, total = torch.cuda.mem_get_info()
    return total - free


def write_segments(path):
    """What the caching allocator holds: every segment with its stream, size and blocks, the largest first."""
    segments = [{"stream": s["stream"], "bytes": s["total_size"],
                 "blocks": [[b["size"], b["state"] == "active_allocated"] for b in s["blocks"]]}
                for s in torch.cuda.memory_snapshot()]
    segments.sort(key=lambda s: -s["bytes"])
    with open(path, "w", encoding="utf-8") as file:
        json.dump(segments, file)


class Metered:
    """A trainer as it is; the meter reads where the loss is there, and where its backward pass has ended."""

    meter = None

    def compute_loss(self, *given, **named):
        result = super().compute_loss(*given, **named)
        self.meter.end("forward")
        return result

    def training_step(self, *given, **named):
        result = super().training_step(*given, **named)
        self.meter.end("backward")
        return result


class MeteredTrainer(Metered, Trainer):
    pass


class Offloading(Trainer):
    """A step inside of TRL's hooks, as TRL's own trainers and axolotl's have it."""

    hooks = None

    def training_step(self, *given, **named):
        with self.hooks:
            return super().training_step(*given, **named)


class OffloadingTrainer(Metered, Offloading):
    pass


def _trainer_of(model, job, given):
    """HF Trainer, metered; with TRL's hooks where the job moves activations to the host."""
    how = job.get("activation_offloading", "none")
    if how == "none":
        return MeteredTrainer(model=model, **given)
    from trl.models.activation_offloading import get_act_offloading_ctx_manager

    trainer = OffloadingTrainer(model=model, **given)
    trainer.hooks = get_act_offloading_ctx_manager(model=trainer.model, use_streams=how == "streams")
    return trainer


def _replays_graphs(job):
    said = job.get("compile")
    return isinstance(said, dict) and said.get("mode") == "reduce-overhead"


def host_bytes():
    with open("/proc/self/status", encoding="utf-8") as file:
        return int(file.read().split("VmRSS:")[1].split()[0]) * 1024


def _samples(config, work):
    if config.model_type in PAIRS:
        return {"train_dataset": RandomPairs(config, work), "data_collator": collate_pairs}
    if work.get("images"):
        return {"train_dataset": RandomImages(config, work), "data_collator": collate}
    # Gemma 3n embeds no token of images and sounds in its layers.
    words = config if hasattr(config, "vocab_size") else config.get_text_config()
    known = getattr(words, "vocab_size_per_layer_input", words.vocab_size)
    return {"train_dataset": RandomTokens(min(known, words.vocab_size), work["sequence_length"])}


def timing_of(meter):
    """`host_steps`: what the host took to start each phase of a step, all micro-batches, and the process's CPU time."""
    return {"step_seconds": statistics.median(meter.seconds[WARM_UP:]), "steps": meter.seconds,
            "host_steps": meter.host_steps}


def measure(model, arguments, config, job, rank, host_before):
    """(what this rank measured, the timing) of the case's steps."""
    meter = Meter()
    # A sample's products leave two workspaces of cuBLAS, which a step of CUDA graphs has in their pool alone.
    meter.sampled = not _replays_graphs(job)
    trainer = _trainer_of(model, job, {"args": arguments, "callbacks": [meter], **_samples(config, job["workload"])})
    trainer.meter = meter
    trainer.train()
    mine = {"rank": rank, "phases": meter.phases, "allocated_peak": meter.whole, "reserved": meter.reserved,
            "device": meter.device, "host_samples": meter.samples.taken, "host_growth": host_bytes() - host_before}
    if meter.profile:
        mine["profile"] = meter.profile
    return mine, timing_of(meter)
