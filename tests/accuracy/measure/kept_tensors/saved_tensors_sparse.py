"""saved_tensors.py for the mixture-of-experts, encoder and encoder-decoder families: writes
tests/golden/saved_tensors_sparse.json.

    python3 tests/accuracy/measure/kept_tensors/saved_tensors_sparse.py
"""

import torch
import transformers

from autograd_storages import arguments, print_cases, saved_storages, write_golden

BATCH, SEQUENCE, TARGET = 2, 32, 16

ATTENTION = {
    "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 64,
}
LATENT = {
    "hidden_size": 128, "intermediate_size": 224, "moe_intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 500,
    "max_position_embeddings": 64, "first_k_dense_replace": 1, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16, "v_head_dim": 48,
}
INDEXED = {**LATENT, "n_group": 2, "topk_group": 1, "index_n_heads": 2, "index_head_dim": 32, "index_topk": 12,
           "mlp_layer_types": ["dense", "sparse"]}
BERT = {
    "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 2, "num_attention_heads": 4,
    "vocab_size": 500, "max_position_embeddings": 64, "attention_probs_dropout_prob": 0.0,
}
BART = {
    "d_model": 128, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 224, "decoder_ffn_dim": 224,
    "vocab_size": 500, "max_position_embeddings": 64,
}
T5 = {"d_model": 128, "d_kv": 32, "d_ff": 224, "num_layers": 2, "num_heads": 4, "vocab_size": 500,
      "decoder_start_token_id": 0}

DINO = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_ratio": 2, "image_size": 42,
    "patch_size": 14, "num_labels": 7, "architectures": ["Dinov2ForImageClassification"],
}

CASES = {
    "mixtral": {"model_type": "mixtral", **ATTENTION, "num_local_experts": 8},
    "qwen2_moe": {"model_type": "qwen2_moe", **ATTENTION, "num_experts": 8,
                  "num_experts_per_tok": 2, "moe_intermediate_size": 96,
                  "shared_expert_intermediate_size": 160, "mlp_only_layers": [0]},
    "qwen3_moe": {"model_type": "qwen3_moe", **ATTENTION, "head_dim": 32, "num_experts": 8,
                  "num_experts_per_tok": 2, "moe_intermediate_size": 96, "norm_topk_prob": True,
                  "num_hidden_layers": 3, "decoder_sparse_step": 2},
    "deepseek_v2": {"model_type": "deepseek_v2", **LATENT},
    "deepseek_v2-full-q": {"model_type": "deepseek_v2", **LATENT, "q_lora_rank": None},
    "deepseek_v3": {"model_type": "deepseek_v3", **LATENT, "n_group": 2, "topk_group": 1},
    "deepseek_v32": {"model_type": "deepseek_v32", **INDEXED},
    "glm_moe_dsa": {"model_type": "glm_moe_dsa", **INDEXED, "num_hidden_layers": 3,
                    "indexer_types": ["full", "shared", "full"],
                    "mlp_layer_types": ["dense", "sparse", "sparse"]},
    "gpt_oss": {"model_type": "gpt_oss", **ATTENTION, "head_dim": 32, "num_local_experts": 8,
                "num_experts_per_tok": 2},
    "bert": {"model_type": "bert", **BERT},
    "bert-pretraining": {"model_type": "bert", **BERT, "architectures": ["BertForPreTraining"]},
    "bert-sequence": {"model_type": "bert", **BERT,
                      "architectures": ["BertForSequenceClassification"]},
    "bert-token": {"model_type": "bert", **BERT, "architectures": ["BertForTokenClassification"]},
    "bert-untied": {"model_type": "bert", **BERT, "tie_word_embeddings": False},
    "roberta": {"model_type": "roberta", **BERT},
    "roberta-sequence": {"model_type": "roberta", **BERT,
                         "architectures": ["RobertaForSequenceClassification"]},
    "bart": {"model_type": "bart", **BART, "attention_dropout": 0.0},
    "mbart": {"model_type": "mbart", **BART, "scale_embedding": True},
    "pegasus": {"model_type": "pegasus", **BART},
    "m2m_100": {"model_type": "m2m_100", **BART, "attention_dropout": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0},
    "whisper": {"model_type": "whisper", **BART, "max_source_positions": SEQUENCE,
                "max_target_positions": 64, "num_mel_bins": 24, "pad_token_id": 0,
                "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
    "t5": {"model_type": "t5", **T5},
    "t5-gated": {"model_type": "t5", **T5, "feed_forward_proj": "gated-gelu",
                 "num_decoder_layers": 3, "tie_word_embeddings": False, "dropout_rate": 0.0},
    "mt5": {"model_type": "mt5", **T5},
    "vit": {"model_type": "vit", "hidden_size": 128, "intermediate_size": 224,
            "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 48, "patch_size": 16,
            "num_labels": 7, "architectures": ["ViTForImageClassification"]},
    "dinov2": {"model_type": "dinov2", **DINO},
    "dinov2-gated": {"model_type": "dinov2", **DINO, "use_swiglu_ffn": True, "qkv_bias": False},
}
CLASSES = {
    "bert": "BertForMaskedLM", "roberta": "RobertaForMaskedLM",
    "bart": "BartForConditionalGeneration", "mbart": "MBartForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration", "t5": "T5ForConditionalGeneration",
    "mt5": "MT5ForConditionalGeneration", "pegasus": "PegasusForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
}
# Attention that only CPU kernels would run in another way: a learned bias makes them fall back.
EAGER_ONLY = ("gpt_oss", "t5", "t5-gated", "mt5")


def build(config: dict, attention: str, dtype: torch.dtype) -> torch.nn.Module:
    options = {k: v for k, v in config.items() if k not in ("model_type", "architectures")}
    parsed = transformers.AutoConfig.for_model(config["model_type"], **options, use_cache=False)
    name = config.get("architectures", [CLASSES.get(config["model_type"])])[0]
    cls = getattr(transformers, name) if name else transformers.AutoModelForCausalLM
    make = cls._from_config if name else cls.from_config
    torch.manual_seed(0)
    return make(parsed, attn_implementation=attention, dtype=dtype).train()


def batch(model: torch.nn.Module, dtype: torch.dtype) -> dict:
    name = type(model).__name__
    vocabulary = getattr(model.config, "vocab_size", 1)
    ids = torch.randint(3, max(vocabulary, 4), (BATCH, SEQUENCE))
    if name.startswith(("ViT", "Dinov2")):
        side = model.config.image_size
        return {"pixel_values": torch.randn(BATCH, 3, side, side, dtype=dtype),
                "labels": torch.zeros(BATCH, dtype=torch.long)}
    target = torch.randint(3, max(vocabulary, 4), (BATCH, TARGET))
    if name.startswith("Whisper"):
        features = torch.randn(BATCH, model.config.num_mel_bins, 2 * SEQUENCE, dtype=dtype)
        return {"input_features": features, "labels": target}
    if model.config.is_encoder_decoder:
        return {"input_ids": ids, "labels": target}
    if name.endswith("ForPreTraining"):
        return {"input_ids": ids, "labels": ids,
                "next_sentence_label": torch.zeros(BATCH, dtype=torch.long)}
    if name.endswith("SequenceClassification"):
        return {"input_ids": ids, "labels": torch.zeros(BATCH, dtype=torch.long)}
    if name.endswith("TokenClassification"):
        return {"input_ids": ids, "labels": torch.zeros(BATCH, SEQUENCE, dtype=torch.long)}
    return {"input_ids": ids, "labels": ids}


def measure(name: str, config: dict, attention: str, dtype: torch.dtype) -> dict:
    model = build(config, attention, dtype)
    patches = (config.get("image_size", 0) // config.get("patch_size", 1)) ** 2 + 1
    return {
        "case": name, "config": config, "attention": attention,
        "dtype": str(dtype).removeprefix("torch."), "batch": BATCH,
        "sequence": patches if patches > 1 else SEQUENCE, "target": TARGET,
        **saved_storages(model, batch(model, dtype)),
    }


def main() -> None:
    args = arguments(__doc__, "saved_tensors_sparse.json")
    torch.set_num_threads(1)
    cases, orders = [], {}
    for name, config in CASES.items():
        if args.only and name != args.only:
            continue
        for attention in ("eager",) if name in EAGER_ONLY else ("sdpa", "eager"):
            for dtype in (torch.float32, torch.bfloat16):
                cases.append(measure(name, config, attention, dtype))
        model = build(config, "eager", torch.float32)
        orders[name] = [parameter for parameter, _ in model.named_parameters()]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors_sparse.py", cases, orders)


if __name__ == "__main__":
    main()
