"""The Hugging Face model of a job, with random weights, and one micro-batch of synthetic tokens for it."""
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import stand_in_flash_attn
from checkpointing import checkpoints, enable
from jobs import parameter_dtype
from sounds import SOUNDS, freeze, sound_batch, sound_class
from tiles import tile

SEQ2SEQ = {"t5", "bart"}
MASKED = {"bert", "roberta", "xlm-roberta", "distilbert", "electra", "modernbert", "deberta-v2"}
PAIRS = {"clip", "siglip"}  # of an encoder of texts and one of images


def make_config(job):
    keys = dict(job["model"])
    config = CONFIG_MAPPING[keys.pop("model_type")](**keys)
    config.get_text_config().use_cache = False
    if config.model_type == "t5":
        config.decoder_start_token_id = config.pad_token_id = 0
    return config


def auto_class(config, scores=False):
    """`scores`: one number a sequence in place of words."""
    if scores:
        config.num_labels, config.pad_token_id = 1, 0
        return transformers.AutoModelForSequenceClassification
    if config.model_type in SEQ2SEQ:
        return transformers.AutoModelForSeq2SeqLM
    if config.model_type in MASKED:
        return transformers.AutoModelForMaskedLM
    if config.model_type in PAIRS:
        return transformers.AutoModel
    if config.model_type in SOUNDS:
        return sound_class(config)
    if hasattr(config, "vision_config"):
        return transformers.AutoModelForImageTextToText
    return transformers.AutoModelForCausalLM


def attention_of(job):
    """As transformers names it."""
    if job.get("sdpa_kernel") != "flash_attn":
        return job["attention"]
    stand_in_flash_attn.install()
    return "flash_attention_2"


def build_model(job, device):
    """In train mode, with the job's parameter dtype, attention, LoRA adapters and checkpointing."""
    torch.manual_seed(0)
    config = make_config(job)
    dtype = getattr(torch, parameter_dtype(job))
    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            cls = auto_class(config)
            build = cls._from_config if config.model_type in SOUNDS else cls.from_config
            model = build(config, attn_implementation=attention_of(job))
    finally:
        torch.set_default_dtype(previous)
    model = model.to(device=device, dtype=dtype)
    if config.model_type in SOUNDS:
        freeze(model, job["workload"].get("frozen", "nothing"))
    model.train()
    if job.get("mlp_tiles"):
        tile(model, job["mlp_tiles"])
    checkpointing = checkpoints(job)
    if job["workload"].get("method") == "lora":
        model = _with_lora(model, job["workload"]["lora"])
        if checkpointing:
            model.enable_input_require_grads()
    if checkpointing:
        enable(job, model)
    return config, model


def _with_lora(model, lora):
    from peft import LoraConfig, get_peft_model

    return get_peft_model(
        model,
        LoraConfig(r=lora["rank"], lora_alpha=32, target_modules=lora["targets"], lora_dropout=0.0, bias="none",
                   task_type="CAUSAL_LM"))


def make_batch(job, config, device):
    """Random tokens; labels are the inputs (the target side of encoder-decoder models too)."""
    work = job["workload"]
    if config.model_type in SOUNDS:
        return sound_batch(job, config, device, getattr(torch, parameter_dtype(job)))
    if hasattr(config, "vision_config") and work.get("images", 1) > 0:
        raise ValueError("this program gives no images; the job says that a sample has one, unless `images` is 0")
    text = getattr(config, "text_config", config)  # a model of text and images says its vocabulary there
    # Gemma 3n embeds no token of images and sounds in its layers.
    known = min(getattr(text, "vocab_size_per_layer_input", text.vocab_size), text.vocab_size)
    tokens = torch.randint(0, known, (work["micro_batch"], work["sequence_length"]), device=device)
    return {"input_ids": tokens, "labels": tokens}


def parameter_counts(model):
    """As a record says them: shared tensors once; partitioned tensors of ZeRO-3 by their full size."""
    def numel(parameter):
        return getattr(parameter, "ds_numel", parameter.numel())

    return {"parameters": sum(numel(p) for p in model.parameters()),
            "trainable_parameters": sum(numel(p) for p in model.parameters() if p.requires_grad)}
