"""TRL's GRPOTrainer with vLLM on its own GPU: what the engine is told, and what the GPU holds at each of its moments.

An engine that sleeps gives its memory back to the driver while the allocator still counts it, so that what is read here
is the driver's: bytes that are not free.
"""
import os
import tempfile
import time

import torch

from words import tokenizer


def arguments(work):
    """Of GRPOConfig. TRL says itself how many sequences and tokens a pass may have."""
    rollout = work["rollout"]
    return {"use_vllm": True, "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": rollout["gpu_memory_utilization"],
            "vllm_enable_sleep_mode": rollout.get("sleep_level", 0) > 0,
            "vllm_max_model_length": work["prompt_length"] + work["new_tokens"],
            "generation_kwargs": {"min_tokens": work["new_tokens"], "ignore_eos": True}}


def save(model):
    """The engine reads the model's folder, as of a checkpoint."""
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    model.config._name_or_path = folder
    model.name_or_path = folder


def device_now():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free


class Watch:
    """Each moment of the engine, in order: what the GPU held after it, what the allocator counts as reserved, seconds."""

    def __init__(self):
        self.moments = []

    def note(self, what, seconds):
        self.moments.append({"after": what, "device": device_now(), "reserved": torch.cuda.memory_reserved(),
                             "allocated": torch.cuda.memory_allocated(), "seconds": seconds})

    def around(self, owner, method, name):
        inner = getattr(owner, method)

        def wrapped(*args, **kwargs):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            result = inner(*args, **kwargs)
            torch.cuda.synchronize()
            self.note(name(args, kwargs) if callable(name) else name, time.perf_counter() - begin)
            return result

        setattr(owner, method, wrapped)


def watched():
    """Before the trainer is made: its engine is then watched from its first moment."""
    from trl.generation import vllm_generation
    from vllm import LLM
    from vllm.model_executor.models import registry
    from vllm.v1.worker import gpu_worker
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_USE_FLASHINFER_SAMPLER"] = "0"
    registry._run_in_subprocess = lambda function: function()  # both as in run_vllm.py
    gpu_worker.warmup_kernels = lambda *_: None
    watch = Watch()
    watch.around(vllm_generation.VLLMGeneration, "_init_vllm", "engine made")
    watch.around(vllm_generation.VLLMGeneration, "sync_weights", "weights handed over")
    watch.around(LLM, "generate", "generated")
    watch.around(LLM, "sleep", "asleep")
    watch.around(LLM, "wake_up", lambda _, named: "awake: " + ", ".join(named.get("tags") or ["all"]))
    return watch


def engine_of(trainer):
    llm = trainer.vllm_generation.llm
    worker = llm.llm_engine.engine_core.engine_core.model_executor.driver_worker.worker
    return {"blocks": llm.llm_engine.vllm_config.cache_config.num_gpu_blocks,
            "requested": int(worker.requested_memory),
            "free_at_start": worker.init_snapshot.free_memory,
            "weights": int(worker.model_runner.model_memory_usage),
            "activations": worker.peak_activation_memory,
            "beside_torch": worker.non_torch_memory,
            "cache_available": int(worker.available_kv_cache_memory_bytes)}
