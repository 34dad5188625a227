"""A few steps of TRL's trainers, measured as trainer_step.py measures HF Trainer's: supervised texts, pairs, single
answers with a verdict, or prompts that the model answers itself."""
import random

import stand_in_datasets

try:
    from datasets import Dataset
except ImportError:
    stand_in_datasets.install()
    from datasets import Dataset

from trl import (DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer,
                 SFTConfig, SFTTrainer)

import trl_engine
from checkpointing import checkpoints
from trainer_step import Metered, Meter, host_bytes, timing_of
from words import text, tokenizer

TRAINERS = {"dpo": (DPOTrainer, DPOConfig), "kto": (KTOTrainer, KTOConfig), "reward": (RewardTrainer, RewardConfig),
            "grpo": (GRPOTrainer, GRPOConfig), "sft": (SFTTrainer, SFTConfig)}
SAMPLES = 256


def _algorithm(work):
    """Supervised training is a workload that names none."""
    return work.get("algorithm", "sft")


def _sample(work, index):
    """Texts whose tokens fill the job's sequence, the end of text included: rows as packing leaves them, too."""
    if _algorithm(work) == "grpo":
        return {"prompt": text(work["prompt_length"])}
    length = work["sequence_length"]
    prompt, answer = length // 2, length - length // 2 - 1
    if _algorithm(work) == "sft":
        return {"text": text(length - 1)}
    if _algorithm(work) == "kto":
        return {"prompt": text(prompt), "completion": text(answer), "label": index % 2 == 0}
    if _algorithm(work) == "reward":
        return {"chosen": text(length - 1), "rejected": text(length - 1)}
    return {"prompt": text(prompt), "chosen": text(answer), "rejected": text(answer)}


def _lengths(work):
    if _algorithm(work) == "grpo":
        engine = trl_engine.arguments(work) if "rollout" in work else {}
        return {"max_completion_length": work["new_tokens"], "num_generations": 4,
                "generation_kwargs": {"min_new_tokens": work["new_tokens"]},
                "beta": 0.0 if work.get("reference", "none") == "none" else 0.04, **engine}
    return {"max_length": work["sequence_length"]}


def _random_rewards(completions, **rest):
    return [random.random() for _ in completions]


def _models(job, build):
    """The trained model, and a reference of its own where the job says so."""
    work = job["workload"]
    if _algorithm(work) == "grpo":
        return {"reward_funcs": _random_rewards}
    if _algorithm(work) in ("dpo", "kto") and work.get("method") != "lora":
        return {"ref_model": build()}
    return {}


def measure(model, said, job, rank, host_before, build):
    """(what this rank measured, the timing); `said`: what TrainingArguments say, `build` makes a reference."""
    work = job["workload"]
    trainer_class, config_class = TRAINERS[_algorithm(work)]
    named = {**said, **_lengths(work), "gradient_checkpointing": checkpoints(job)}
    meter = Meter()
    random.seed(0)
    samples = Dataset.from_list([_sample(work, index) for index in range(SAMPLES)])
    watch = None
    if "rollout" in work:
        trl_engine.save(model)
        watch = meter.watch = trl_engine.watched()
    measured = type("Measured", (Metered, trainer_class), {})
    trainer = measured(model=model, args=config_class(**named), train_dataset=samples, processing_class=tokenizer(),
                       callbacks=[meter], **_models(job, build))
    trainer.meter = meter
    trainer.train()
    mine = {"rank": rank, "phases": meter.phases, "allocated_peak": meter.whole, "reserved": meter.reserved,
            "device": meter.device, "host_growth": host_bytes() - host_before}
    if watch:
        mine["rollout"] = {**trl_engine.engine_of(trainer), "moments": watch.moments}
    return mine, timing_of(meter)
