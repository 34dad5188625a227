"""What autograd keeps for the backward pass, family by family: writes tests/golden/saved_tensors.json.

Every case builds a tiny model with transformers on the CPU, runs one forward pass in train mode with
labels, and records the distinct storages that saved tensors refer to; parameters, buffers and the
inputs are left out. tests/core/program/saved_tensors_test.cpp compares them with the tape.

    python3 tests/accuracy/measure/kept_tensors/saved_tensors.py
"""

import torch
import transformers

from autograd_storages import arguments, print_cases, saved_storages, write_golden

# (batch, sequence, type): a batch of one folds heads without a copy.
RUNS = [(2, 32, torch.float32), (2, 32, torch.bfloat16), (1, 48, torch.bfloat16)]

LLAMA_LIKE = {
    "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 64,
}
GPT_LIKE = {
    "n_embd": 128, "n_layer": 2, "n_head": 4, "vocab_size": 500, "n_positions": 64,
}
FALCON = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500,
    "max_position_embeddings": 64,
}
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}

# Name: config.json of the case. Attention dropout is 0 where attention is fused: the CPU kernel has
# none, and would be replaced by another path.
CASES = {
    "llama": {"model_type": "llama", **LLAMA_LIKE},
    "llama-bias": {"model_type": "llama", **LLAMA_LIKE, "attention_bias": True, "mlp_bias": True,
                   "head_dim": 48, "tie_word_embeddings": True},
    "mistral": {"model_type": "mistral", **LLAMA_LIKE},
    "qwen2": {"model_type": "qwen2", **LLAMA_LIKE},
    "qwen3": {"model_type": "qwen3", **LLAMA_LIKE, "head_dim": 48},
    "gemma": {"model_type": "gemma", **LLAMA_LIKE, "head_dim": 48},
    "gemma-multi-query": {"model_type": "gemma", **LLAMA_LIKE, "num_key_value_heads": 1},
    "gemma2": {"model_type": "gemma2", **LLAMA_LIKE, "head_dim": 48},
    "gemma3": {"model_type": "gemma3_text", **LLAMA_LIKE, "head_dim": 48},
    "gemma3-long": {"model_type": "gemma3_text", **LLAMA_LIKE, "head_dim": 48,
                    "sliding_window": 16, "num_hidden_layers": 4, "sliding_window_pattern": 2},
    "mistral-long": {"model_type": "mistral", **LLAMA_LIKE, "sliding_window": 32},
    "qwen2-long": {"model_type": "qwen2", **LLAMA_LIKE, "use_sliding_window": True,
                   "sliding_window": 8, "max_window_layers": 1},
    "phi": {"model_type": "phi", **LLAMA_LIKE},
    "phi-qk-norm": {"model_type": "phi", **LLAMA_LIKE, "qk_layernorm": True,
                    "resid_pdrop": 0.1, "embd_pdrop": 0.1},
    "phi3": {"model_type": "phi3", **LLAMA_LIKE, "pad_token_id": 0},
    "phi3-partial": {"model_type": "phi3", **LLAMA_LIKE, "pad_token_id": 0,
                     "partial_rotary_factor": 0.75, "resid_pdrop": 0.1},
    "stablelm": {"model_type": "stablelm", **LLAMA_LIKE},
    "stablelm-parallel": {"model_type": "stablelm", **LLAMA_LIKE, "use_parallel_residual": True,
                          "qk_layernorm": True, "use_qkv_bias": True, "hidden_dropout": 0.1},
    "starcoder2": {"model_type": "starcoder2", **LLAMA_LIKE, "residual_dropout": 0.1,
                   "embedding_dropout": 0.1},
    "olmo2": {"model_type": "olmo2", **LLAMA_LIKE},
    "glm4": {"model_type": "glm4", **LLAMA_LIKE, "head_dim": 32, "pad_token_id": 0},
    "cohere": {"model_type": "cohere", **LLAMA_LIKE},
    "cohere-qk-norm": {"model_type": "cohere", **LLAMA_LIKE, "use_qk_norm": True},
    "gpt2": {"model_type": "gpt2", **GPT_LIKE, "attn_pdrop": 0.0},
    "gpt2-no-dropout": {"model_type": "gpt2", **GPT_LIKE, **NO_DROPOUT},
    "gptj": {"model_type": "gptj", **GPT_LIKE, "rotary_dim": 16},
    "gptj-dropout": {"model_type": "gptj", **GPT_LIKE, "rotary_dim": 16, "resid_pdrop": 0.1,
                     "embd_pdrop": 0.1, "attn_pdrop": 0.1},
    "gpt_neo": {"model_type": "gpt_neo", "hidden_size": 128, "num_layers": 2, "num_heads": 4,
                "vocab_size": 500, "max_position_embeddings": 64, "window_size": 16,
                "attention_types": [[["global", "local"], 1]]},
    "gpt_neox": {"model_type": "gpt_neox", **LLAMA_LIKE},
    "gpt_neox-serial": {"model_type": "gpt_neox", **LLAMA_LIKE, "use_parallel_residual": False,
                        "hidden_dropout": 0.1, "rotary_pct": 1.0},
    "opt": {"model_type": "opt", "hidden_size": 128, "ffn_dim": 512, "num_hidden_layers": 2,
            "num_attention_heads": 4, "vocab_size": 500, "max_position_embeddings": 64},
    "opt-post-norm": {"model_type": "opt", "hidden_size": 128, "ffn_dim": 512,
                      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500,
                      "max_position_embeddings": 64, "do_layer_norm_before": False,
                      "word_embed_proj_dim": 64, "dropout": 0.0},
    "bloom": {"model_type": "bloom", "hidden_size": 128, "n_layer": 2, "n_head": 4,
              "vocab_size": 500},
    "bloom-dropout": {"model_type": "bloom", "hidden_size": 128, "n_layer": 2, "n_head": 4,
                      "vocab_size": 500, "hidden_dropout": 0.1, "attention_dropout": 0.1,
                      "apply_residual_connection_post_layernorm": True},
    "falcon-multi-query": {"model_type": "falcon", **FALCON},
    "falcon-multi-head": {"model_type": "falcon", **FALCON, "multi_query": False, "bias": True,
                          "parallel_attn": False},
    "falcon-alibi": {"model_type": "falcon", **FALCON, "multi_query": False, "alibi": True,
                     "bias": True, "parallel_attn": False},
    "falcon-grouped": {"model_type": "falcon", **FALCON, "new_decoder_architecture": True,
                       "num_kv_heads": 2},
}


def build(config: dict, attention: str, dtype: torch.dtype) -> torch.nn.Module:
    options = {k: v for k, v in config.items() if k != "model_type"}
    parsed = transformers.AutoConfig.for_model(config["model_type"], **options, use_cache=False)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        parsed, attn_implementation=attention, dtype=dtype
    )
    return model.train()


def measure(
    name: str, config: dict, attention: str, batch: int, sequence: int, dtype: torch.dtype
) -> dict:
    model = build(config, attention, dtype)
    ids = torch.randint(0, model.config.vocab_size, (batch, sequence))
    return {
        "case": name,
        "config": config,
        "attention": attention,
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "sequence": sequence,
        **saved_storages(model, {"input_ids": ids, "labels": ids}),
    }


def implementations(config: dict) -> list[str]:
    """The fused attention where the class has one, and the eager one."""
    parsed = transformers.AutoConfig.for_model(config["model_type"])
    cls = transformers.MODEL_FOR_CAUSAL_LM_MAPPING[type(parsed)]
    return ["sdpa", "eager"] if cls._supports_sdpa else ["eager"]


def main() -> None:
    args = arguments(__doc__, "saved_tensors.json")
    torch.set_num_threads(1)
    cases, orders = [], {}
    for name, config in CASES.items():
        if args.only and name != args.only:
            continue
        for attention in implementations(config):
            for batch, sequence, dtype in RUNS:
                cases.append(measure(name, config, attention, batch, sequence, dtype))
        model = build(config, "eager", torch.float32)
        orders[name] = [parameter for parameter, _ in model.named_parameters()]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors.py", cases, orders)


if __name__ == "__main__":
    main()
