"""A few steps of OpenRLHF's own programs, measured as trainer_step.py measures HF Trainer's.

The program runs as its command line does (runpy); the meter reads around DeepspeedStrategy's backward and optimizer_step.
A step lasts from one optimizer step's end to the next one's: samples, losses read by the host and the logs' exchange
are in it. Nothing is saved: the program ends when fit has.
"""
import importlib
import runpy
import sys
from types import SimpleNamespace

import transformers

import stand_in_datasets
from models import parameter_counts
from trainer_step import Meter, host_bytes, timing_of

TRAINERS = {"train_sft": ("openrlhf.trainer.sft_trainer", "SFTTrainer"),
            "train_rm": ("openrlhf.trainer.rm_trainer", "RewardModelTrainer"),
            "train_dpo": ("openrlhf.trainer.dpo_trainer", "DPOTrainer")}


class Finished(Exception):
    """fit has ended."""


def import_program(program):
    """What the program imports, before a GPU is touched."""
    stand_in_datasets.install()
    module, trainer = TRAINERS[program]
    importlib.import_module("openrlhf.cli." + program)
    # AutoTokenizer takes a model's own class, which would not split texts into words.
    importlib.import_module("openrlhf.utils.utils").AutoTokenizer = transformers.PreTrainedTokenizerFast
    return getattr(importlib.import_module(module), trainer)


class Watch:
    """Drives a meter from within the program."""

    def __init__(self, trainer_class):
        from openrlhf.utils.deepspeed import DeepspeedStrategy

        self.meter, self.micro, self.model = Meter(), 0, None
        self._fit, trainer_class.fit = trainer_class.fit, self._fitting()
        self._backward, DeepspeedStrategy.backward = DeepspeedStrategy.backward, self._going_back()
        self._step, DeepspeedStrategy.optimizer_step = DeepspeedStrategy.optimizer_step, self._stepping()

    def _begin(self, steps):
        self.meter.on_step_begin(None, SimpleNamespace(global_step=steps), None)

    def _fitting(self):
        def fit(trainer, *given, **named):
            self.model = trainer.model
            self.meter.on_train_begin(None, None, None)
            self._begin(0)
            self._fit(trainer, *given, **named)
            raise Finished

        return fit

    def _going_back(self):
        def backward(strategy, *given, **named):
            self.meter.end("forward")
            self._backward(strategy, *given, **named)
            self.meter.end("backward")

        return backward

    def _stepping(self):
        def optimizer_step(strategy, *given, **named):
            self._step(strategy, *given, **named)
            self.micro += 1
            if self.micro % strategy.accumulated_gradient == 0:
                self.meter.on_step_end(None, None, None)
                self._begin(len(self.meter.seconds))

        return optimizer_step


def measure(case, arguments, trainer_class, rank, host_before):
    """(parameters, what this rank measured, the timing); `arguments`: the program's own."""
    watch = Watch(trainer_class)
    sys.argv = [case["program"], *arguments]
    try:
        runpy.run_module("openrlhf.cli." + case["program"], run_name="__main__")
    except Finished:
        pass
    meter = watch.meter
    meter.on_train_end(None, None, None)
    mine = {"rank": rank, "phases": meter.phases, "allocated_peak": meter.whole, "reserved": meter.reserved,
            "device": meter.device, "host_samples": meter.samples.taken, "host_growth": host_bytes() - host_before}
    return parameter_counts(watch.model), mine, timing_of(meter)
