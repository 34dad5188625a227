"""saved_tensors.py for the families that came later and for heads other than a language model's: writes
tests/golden/saved_tensors_families.json.

    python3 tests/accuracy/measure/kept_tensors/saved_tensors_families.py
"""

import torch
import transformers

from autograd_storages import arguments, print_cases, saved_storages, write_golden

RUNS = [(2, 32, torch.float32), (2, 32, torch.bfloat16), (1, 48, torch.bfloat16)]

LLAMA_LIKE = {
    "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 64, "pad_token_id": 0,
    "head_dim": 32,
}
DISTIL = {
    "dim": 128, "hidden_dim": 224, "n_layers": 2, "n_heads": 4, "vocab_size": 500,
    "max_position_embeddings": 64, "attention_dropout": 0.0, "dropout": 0.0,
}
GROUPED = {
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 96,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
}
ENCODER = {
    "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 2, "num_attention_heads": 4,
    "vocab_size": 500, "max_position_embeddings": 64, "pad_token_id": 0, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
MODERN = {
    **{k: v for k, v in ENCODER.items() if not k.endswith("_prob")}, "num_hidden_layers": 3,
    "local_attention": 16, "global_attn_every_n_layers": 2, "bos_token_id": 1, "eos_token_id": 2,
    "cls_token_id": 1, "sep_token_id": 2,
}
DEBERTA = {
    **ENCODER, "relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0,
    "max_relative_positions": -1,
}
GEMMA4 = {
    **LLAMA_LIKE, "global_head_dim": 64, "vocab_size_per_layer_input": 500, "hidden_size_per_layer_input": 0,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
}
GEMMA4_UNIFIED = {
    **LLAMA_LIKE, "global_head_dim": 64,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
}
GEMMA3N = {
    **LLAMA_LIKE, "vocab_size_per_layer_input": 500, "hidden_size_per_layer_input": 16, "laurel_rank": 8,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
}
LLAMA4 = {
    **LLAMA_LIKE, "num_local_experts": 8, "num_experts_per_tok": 1, "intermediate_size": 96,
    "intermediate_size_mlp": 224, "interleave_moe_layer_step": 2, "attention_chunk_size": 64,
    "bos_token_id": 1, "eos_token_id": 2,
}
MPT = {"d_model": 128, "n_layers": 2, "n_heads": 4, "vocab_size": 500, "max_seq_len": 64}
EAGER_ONLY = ("deberta", "mpt")
CASES = {
    "llama-base": {"model_type": "llama", **LLAMA_LIKE, "architectures": ["LlamaModel"]},
    "llama-sequence": {"model_type": "llama", **LLAMA_LIKE, "num_labels": 3,
                       "architectures": ["LlamaForSequenceClassification"]},
    "qwen2-token": {"model_type": "qwen2", **LLAMA_LIKE, "num_labels": 3, "classifier_dropout": 0.0,
                    "architectures": ["Qwen2ForTokenClassification"]},
    "gpt2-sequence": {"model_type": "gpt2", "n_embd": 128, "n_layer": 2, "n_head": 4, "vocab_size": 500,
                      "n_positions": 64, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
                      "pad_token_id": 0, "num_labels": 3,
                      "architectures": ["GPT2ForSequenceClassification"]},
    "smollm3": {"model_type": "smollm3", **LLAMA_LIKE},
    "olmo3": {"model_type": "olmo3", **LLAMA_LIKE},
    "olmo3-long": {"model_type": "olmo3", **LLAMA_LIKE, "sliding_window": 16},
    "granite": {"model_type": "granite", **LLAMA_LIKE, "residual_multiplier": 0.22,
                "logits_scaling": 8.0, "embedding_multiplier": 12.0},
    "seed_oss": {"model_type": "seed_oss", **LLAMA_LIKE, "attention_dropout": 0.0},
    "hunyuan_v1_dense": {"model_type": "hunyuan_v1_dense", **LLAMA_LIKE},
    "ernie4_5": {"model_type": "ernie4_5", **LLAMA_LIKE},
    "exaone4": {"model_type": "exaone4", **LLAMA_LIKE},
    "exaone4-long": {"model_type": "exaone4", **LLAMA_LIKE, "sliding_window": 16},
    "ministral": {"model_type": "ministral", **LLAMA_LIKE},
    "ministral3": {"model_type": "ministral3", **LLAMA_LIKE},
    "arcee": {"model_type": "arcee", **LLAMA_LIKE},
    "cohere2": {"model_type": "cohere2", **LLAMA_LIKE},
    "cohere2-long": {"model_type": "cohere2", **LLAMA_LIKE, "sliding_window": 16},
    "glm": {"model_type": "glm", **LLAMA_LIKE},
    "glm4_moe": {"model_type": "glm4_moe", **LLAMA_LIKE, **GROUPED, "use_qk_norm": True},
    "glm4_moe_lite": {"model_type": "glm4_moe_lite", **LLAMA_LIKE, **GROUPED, "num_key_value_heads": 4, "head_dim": 16,
                      "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 24, "qk_rope_head_dim": 16,
                      "v_head_dim": 40, "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]},
    "dots1": {"model_type": "dots1", **LLAMA_LIKE, **GROUPED},
    "minimax_m2": {"model_type": "minimax_m2", **LLAMA_LIKE, "num_local_experts": 8,
                   "num_experts_per_tok": 2, "rotary_dim": 16},
    "distilbert": {"model_type": "distilbert", **DISTIL},
    "distilbert-sequence": {"model_type": "distilbert", **DISTIL, "num_labels": 3,
                            "seq_classif_dropout": 0.0,
                            "architectures": ["DistilBertForSequenceClassification"]},
    "distilbert-token": {"model_type": "distilbert", **DISTIL, "num_labels": 3,
                         "architectures": ["DistilBertForTokenClassification"]},
    "xlm-roberta": {"model_type": "xlm-roberta", "hidden_size": 128, "intermediate_size": 224,
                    "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500,
                    "max_position_embeddings": 64, "attention_probs_dropout_prob": 0.0},
    "olmoe": {"model_type": "olmoe", **LLAMA_LIKE, "num_experts": 8, "num_experts_per_tok": 2},
    "nemotron": {"model_type": "nemotron", **LLAMA_LIKE},
    "nemotron-bias": {"model_type": "nemotron", **LLAMA_LIKE, "attention_bias": True, "mlp_bias": True,
                      "partial_rotary_factor": 1.0},
    "phimoe": {"model_type": "phimoe", **LLAMA_LIKE, "num_local_experts": 8},
    "phimoe-noise": {"model_type": "phimoe", **LLAMA_LIKE, "num_local_experts": 8, "input_jitter_noise": 0.01,
                     "router_jitter_noise": 0.01, "lm_head_bias": True, "attention_bias": True},
    "ernie4_5_moe": {"model_type": "ernie4_5_moe", **LLAMA_LIKE, "moe_num_experts": 8, "moe_k": 2,
                     "moe_intermediate_size": 96, "moe_layer_start_index": 1},
    "hunyuan_v1_moe": {"model_type": "hunyuan_v1_moe", **LLAMA_LIKE, "num_experts": 8, "moe_topk": 2},
    "electra": {"model_type": "electra", **ENCODER, "embedding_size": 64},
    "electra-sequence": {"model_type": "electra", **ENCODER, "embedding_size": 128, "num_labels": 3,
                         "architectures": ["ElectraForSequenceClassification"]},
    "electra-token": {"model_type": "electra", **ENCODER, "num_labels": 3, "hidden_dropout_prob": 0.1,
                      "architectures": ["ElectraForTokenClassification"]},
    "modernbert": {"model_type": "modernbert", **MODERN},
    "modernbert-short": {"model_type": "modernbert", **MODERN, "local_attention": 128, "attention_bias": True,
                         "mlp_bias": True, "norm_bias": True},
    "modernbert-sequence": {"model_type": "modernbert", **MODERN, "num_labels": 3,
                            "architectures": ["ModernBertForSequenceClassification"]},
    "modernbert-mean": {"model_type": "modernbert", **MODERN, "num_labels": 3, "classifier_pooling": "mean",
                        "architectures": ["ModernBertForSequenceClassification"]},
    "modernbert-token": {"model_type": "modernbert", **MODERN, "num_labels": 3,
                         "architectures": ["ModernBertForTokenClassification"]},
    "deberta-v2": {"model_type": "deberta-v2", **DEBERTA},
    "deberta-v2-plain": {"model_type": "deberta-v2", **ENCODER, "type_vocab_size": 2},
    "deberta-v2-one-term": {"model_type": "deberta-v2", **DEBERTA, "pos_att_type": ["c2p"], "norm_rel_ebd": "none",
                            "hidden_dropout_prob": 0.1},
    "deberta-v2-sequence": {"model_type": "deberta-v2", **DEBERTA, "num_labels": 3,
                            "architectures": ["DebertaV2ForSequenceClassification"]},
    "deberta-v2-token": {"model_type": "deberta-v2", **DEBERTA, "num_labels": 3,
                         "architectures": ["DebertaV2ForTokenClassification"]},
    "gemma4": {"model_type": "gemma4_text", **GEMMA4},
    "gemma4-shared": {"model_type": "gemma4_text", **GEMMA4, "hidden_size_per_layer_input": 16,
                      "num_kv_shared_layers": 2, "use_double_wide_mlp": True},
    "gemma4-experts": {"model_type": "gemma4_text", **GEMMA4, "sliding_window": 16, "attention_k_eq_v": True,
                       "num_global_key_value_heads": 1, "enable_moe_block": True, "num_experts": 8,
                       "top_k_experts": 2, "moe_intermediate_size": 96, "final_logit_softcapping": 30.0},
    "gemma4_unified_text": {"model_type": "gemma4_unified_text", **GEMMA4_UNIFIED, "sliding_window": 16,
                            "num_global_key_value_heads": 1, "attention_k_eq_v": True, "final_logit_softcapping": 30.0},
    "gemma4_unified_text-plain": {"model_type": "gemma4_unified_text", **GEMMA4_UNIFIED},
    "gemma4_unified": {"model_type": "gemma4_unified", "architectures": ["Gemma4UnifiedForConditionalGeneration"],
                       "text_config": {"model_type": "gemma4_unified_text", **GEMMA4_UNIFIED},
                       "vision_config": {"model_type": "gemma4_unified_vision", "patch_size": 2, "mm_embed_dim": 64,
                                         "mm_posemb_size": 8, "output_proj_dims": 64},
                       "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 32}},
    "gemma3n": {"model_type": "gemma3n_text", **GEMMA3N, "num_kv_shared_layers": 0},
    "gemma3n-shared": {"model_type": "gemma3n_text", **GEMMA3N, "num_kv_shared_layers": 2, "sliding_window": 16,
                       "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0],
                       "intermediate_size": [224, 192, 192, 96]},
    "gemma3n-two": {"model_type": "gemma3n_text", **GEMMA3N, "num_kv_shared_layers": 0, "altup_num_inputs": 2,
                    "altup_active_idx": 1, "altup_correct_scale": False, "attention_bias": True,
                    "tie_word_embeddings": False},
    # Of the whole network without images and sounds: timm builds its tower.
    "gemma3n-whole": {"model_type": "gemma3n", "architectures": ["Gemma3nForConditionalGeneration"],
                      "text_config": {"model_type": "gemma3n_text", **GEMMA3N, "vocab_size_per_layer_input": 480,
                                      "num_kv_shared_layers": 2},
                      "vision_config": {"model_type": "gemma3n_vision", "vocab_size": 10, "vocab_offset": 480},
                      "audio_config": {"model_type": "gemma3n_audio", "hidden_size": 96, "vocab_size": 10,
                                       "vocab_offset": 490, "conf_num_hidden_layers": 2}},
    "llama4": {"model_type": "llama4_text", **LLAMA4},
    "llama4-chunks": {"model_type": "llama4_text", **LLAMA4, "attention_chunk_size": 16, "use_qk_norm": False,
                      "no_rope_layers": [1, 0, 1, 0], "interleave_moe_layer_step": 1},
    "mpt": {"model_type": "mpt", **MPT},
    "mpt-clipped": {"model_type": "mpt", **MPT, "attn_config": {"clip_qkv": 6.0}},
    "mpt-sequence": {"model_type": "mpt", **MPT, "num_labels": 3, "pad_token_id": 0,
                     "architectures": ["MptForSequenceClassification"]},
    "granitemoe": {"model_type": "granitemoe", **LLAMA_LIKE, "num_local_experts": 8,
                   "num_experts_per_tok": 2},
    "granitemoeshared": {"model_type": "granitemoeshared", **LLAMA_LIKE, "num_local_experts": 8,
                         "num_experts_per_tok": 2, "shared_intermediate_size": 160},
    "granitemoeshared-alone": {"model_type": "granitemoeshared", **LLAMA_LIKE, "num_local_experts": 8,
                               "num_experts_per_tok": 2},
    "apertus": {"model_type": "apertus", **LLAMA_LIKE},
    "apertus-relu2": {"model_type": "apertus", **LLAMA_LIKE, "hidden_act": "relu2", "tie_word_embeddings": True},
    "cwm": {"model_type": "cwm", **LLAMA_LIKE, "sliding_window": 16},
    "cwm-long": {"model_type": "cwm", **LLAMA_LIKE, "mlp_bias": True, "tie_word_embeddings": True},
    "hyperclovax": {"model_type": "hyperclovax", **LLAMA_LIKE},
    "hyperclovax-before": {"model_type": "hyperclovax", **LLAMA_LIKE, "use_post_norm": False, "attention_bias": True},
    "jais2": {"model_type": "jais2", **LLAMA_LIKE},
    "olmo": {"model_type": "olmo", **LLAMA_LIKE},
    "olmo-clipped": {"model_type": "olmo", **LLAMA_LIKE, "clip_qkv": 8.0, "tie_word_embeddings": True},
}


def build(config: dict, attention: str, dtype: torch.dtype) -> torch.nn.Module:
    """The class that the configuration names, or the language model."""
    options = {k: v for k, v in config.items() if k != "model_type"}
    parsed = transformers.AutoConfig.for_model(config["model_type"], **options, use_cache=False)
    named = config.get("architectures")
    masked = transformers.MODEL_FOR_MASKED_LM_MAPPING
    usual = masked if type(parsed) in masked else transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    cls = getattr(transformers, named[0]) if named else usual[type(parsed)]
    torch.manual_seed(0)
    model = cls._from_config(parsed, attn_implementation=attention, dtype=dtype).train()
    for parameter in model.parameters():  # routers too that a class makes in fp32, as from_pretrained does
        parameter.data = parameter.data.to(dtype)
    return model


class WithLoss(torch.nn.Module):
    """The mean of the last hidden states, for classes without a loss."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        output = self.model(**inputs)
        output.loss = output.last_hidden_state.mean()
        return output


def inputs_of(config: dict, batch: int, sequence: int) -> dict:
    ids = torch.randint(1, config.get("text_config", config)["vocab_size"], (batch, sequence))
    named = config.get("architectures", ["ForCausalLM"])[0]
    if named.endswith("Model"):
        return {"input_ids": ids}
    if named.endswith("ForSequenceClassification"):
        return {"input_ids": ids, "labels": torch.zeros(batch, dtype=torch.long)}
    if named.endswith("ForTokenClassification"):
        return {"input_ids": ids, "labels": torch.zeros_like(ids)}
    return {"input_ids": ids, "labels": ids}


def measure(name: str, config: dict, attention: str, batch: int, sequence: int, dtype: torch.dtype) -> dict:
    model = build(config, attention, dtype)
    if config.get("architectures", [""])[0].endswith("Model"):
        model = WithLoss(model)
    return {
        "case": name,
        "config": config,
        "attention": attention,
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "sequence": sequence,
        # What a router draws at random leaves nodes that nothing needs.
        **saved_storages(model, inputs_of(config, batch, sequence), alive=config["model_type"] == "phimoe"),
    }


def main() -> None:
    args = arguments(__doc__, "saved_tensors_families.json")
    torch.set_num_threads(1)
    cases, orders = [], {}
    for name, config in CASES.items():
        if args.only and name != args.only:
            continue
        for attention in ("eager",) if name.startswith(EAGER_ONLY) else ("sdpa", "eager"):
            for batch, sequence, dtype in RUNS:
                cases.append(measure(name, config, attention, batch, sequence, dtype))
        model = build(config, "eager", torch.float32)
        orders[name] = [parameter for parameter, _ in model.named_parameters()]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors_families.py", cases, orders)


if __name__ == "__main__":
    main()
