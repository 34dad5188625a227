"""The model that a user's script gives to HF Trainer: random weights, quantized for QLoRA, adapters of peft, linears
of torchao in fp8."""
import contextlib
import gc
import os
import shutil
import tempfile

import torch

from checkpointing import arguments as checkpointing_arguments, checkpoints, enable
from float8 import convert
from image_samples import freeze
from jobs import parameter_dtype
from models import PAIRS, auto_class, make_config


def plain_model(job, config, dtype, device):
    scores = job["workload"].get("algorithm") == "reward"
    attention = {"attn_implementation": job["attention"]} if "attention" in job else {}
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = auto_class(config, scores).from_config(config, **attention)
    finally:
        torch.set_default_dtype(previous)
    return model.to(dtype)


def _shards(job):
    """Whether packed weights are divided, which wants them in a floating type."""
    return job.get("framework", {}).get("name") in ("fsdp2", "deepspeed")


def _compute_type(job):
    """What linears in 4 bits multiply in: the type of the others, as LLaMA-Factory and axolotl set it. Records before
    2026-11-30 multiplied in bf16 in fp32 too."""
    precision = job["precision"]
    preset = precision["preset"] if isinstance(precision, dict) else precision
    return {"fp32": torch.float32, "fp16": torch.float16}.get(preset.partition("-")[0], torch.bfloat16)


def _quantization(stored, job):
    from transformers import BitsAndBytesConfig

    if stored == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    values, _, scales = stored.partition("_")  # "nf4", or "nf4_double": the scales are quantized too
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=values, bnb_4bit_compute_dtype=_compute_type(job),
                              bnb_4bit_use_double_quant=scales == "double",
                              bnb_4bit_quant_storage=torch.bfloat16 if _shards(job) else torch.uint8)


@contextlib.contextmanager
def _whole():
    """Models are built and loaded whole, though TrainingArguments shard them."""
    from transformers.integrations import deepspeed

    reference = deepspeed._hf_deepspeed_config_weak_ref
    deepspeed.unset_hf_deepspeed_config()
    sharded = os.environ.pop("ACCELERATE_USE_FSDP", None)
    try:
        yield
    finally:
        deepspeed._hf_deepspeed_config_weak_ref = reference
        if sharded is not None:
            os.environ["ACCELERATE_USE_FSDP"] = sharded


def _quantized(job, config, device, stored):
    """As from_pretrained loads a checkpoint in few bits: saved first by rank 0, as there is none to load."""
    attention = {"attn_implementation": job["attention"]} if "attention" in job else {}
    ranks = os.getppid() if int(os.environ.get("WORLD_SIZE", 1)) > 1 else os.getpid()
    folder = os.path.join(tempfile.gettempdir(), f"checkpoint-{ranks}")  # of all ranks
    first = int(os.environ.get("RANK", 0)) == 0
    with _whole():
        if first:
            plain_model(job, config, torch.bfloat16, device).save_pretrained(folder)
        gc.collect()
        torch.cuda.empty_cache()
        _meet()
        model = auto_class(config).from_pretrained(folder, quantization_config=_quantization(stored, job),
                                                   device_map={"": device.index}, dtype=torch.bfloat16, **attention)
        _meet()
    if first:
        shutil.rmtree(folder)
    return model


def _meet():
    if torch.distributed.is_initialized():
        torch.distributed.barrier()


def _targets(lora):
    """peft's word for every linear layer stands alone."""
    return lora["targets"][0] if lora["targets"] == ["all-linear"] else lora["targets"]


def _with_adapters(model, job):
    from peft import LoraConfig, get_peft_model

    lora = job["workload"]["lora"]
    generates = hasattr(model, "prepare_inputs_for_generation") and model.config.model_type not in PAIRS  # encoders do not
    model = get_peft_model(model, LoraConfig(r=lora["rank"], lora_alpha=32, lora_dropout=0.0,
                                             target_modules=_targets(lora), use_dora=lora.get("dora", False),
                                             use_rslora=lora.get("rank_stabilized", False),
                                             task_type="CAUSAL_LM" if generates else None))
    if checkpoints(job):
        model.enable_input_require_grads()
    return model


def build(case, device):
    """The job's config and model on `device`; a case may say that it is `built_on` the host."""
    job = case["job"]
    torch.manual_seed(0)
    config = make_config(job)
    lora = job["workload"].get("lora", {}) if job["workload"].get("method") == "lora" else None
    stored = (lora or {}).get("quantization", "none")
    dtype = getattr(torch, case.get("model_dtype") or parameter_dtype(job))
    if stored == "none":
        model = convert(plain_model(job, config, dtype, case.get("built_on", device)), job)
    else:
        model = _quantized(job, config, device, stored)
        if lora.get("prepare_kbit", True):
            from peft import prepare_model_for_kbit_training

            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=checkpoints(job))
    freeze(model, job["workload"].get("frozen", "nothing"))
    if lora is not None:
        model = _with_adapters(model, job)
    if checkpoints(job) and checkpointing_arguments(job) is None:
        enable(job, model)
    return config, model
