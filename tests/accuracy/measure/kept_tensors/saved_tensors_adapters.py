"""What autograd keeps of models with peft's adapters: writes tests/golden/saved_tensors_adapters.json.

Every case builds a tiny model with transformers on the CPU, wraps it with peft, runs one forward pass in train mode
with labels, and records the distinct storages that saved tensors refer to when it has ended, with the parameters that
train. tests/core/program/saved_adapters_test.cpp compares both with the tape.

    python3 tests/accuracy/measure/kept_tensors/saved_tensors_adapters.py
"""

import peft
import torch
import transformers

from autograd_storages import arguments, print_cases, saved_storages, write_golden

RUNS = [(2, 32, torch.float32), (1, 48, torch.bfloat16)]

LLAMA = {
    "model_type": "llama", "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 500, "max_position_embeddings": 64,
}
TIED = {**LLAMA, "tie_word_embeddings": True}
MOE = {
    **LLAMA, "model_type": "qwen3_moe", "head_dim": 32, "moe_intermediate_size": 64, "num_experts": 4,
    "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [],
}
OLMOE = {**LLAMA, "model_type": "olmoe", "num_experts": 4, "num_experts_per_tok": 2}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4}
ERNIE = {
    **LLAMA, "model_type": "ernie4_5_moe", "moe_intermediate_size": 64, "moe_num_experts": 4, "moe_k": 2,
    "moe_layer_start_index": 1, "moe_layer_end_index": 1, "moe_num_shared_experts": 1,
}
GEMMA3N = {
    **LLAMA, "model_type": "gemma3n_text", "num_hidden_layers": 4, "head_dim": 32,
    "vocab_size_per_layer_input": 500, "hidden_size_per_layer_input": 16, "laurel_rank": 8, "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0],
}
QWEN = {**LLAMA, "model_type": "qwen2"}
ATTENTION = ["q_proj", "v_proj"]
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

OF_GEMMA3N = ["linear_left", "linear_right", "per_layer_input_gate", "per_layer_projection", "modality_router",
              "prediction_coefs", "correction_coefs", "per_layer_model_projection"]

# Name: config.json, and the job's own words for what peft is told.
CASES = {
    "plain": (LLAMA, {"targets": ALL}),
    "dropout": (LLAMA, {"targets": ALL, "dropout": 0.1}),
    "dora": (LLAMA, {"targets": ATTENTION, "dora": True}),
    "dora-bias": (QWEN, {"targets": ALL, "dora": True}),
    "dora-dropout": (LLAMA, {"targets": ATTENTION, "dora": True, "dropout": 0.1}),
    "saved": (LLAMA, {"targets": ATTENTION, "modules_to_save": ["embed_tokens", "lm_head"]}),
    "saved-head": (LLAMA, {"targets": ATTENTION, "modules_to_save": ["lm_head"]}),
    "saved-norms": (LLAMA, {"targets": ATTENTION, "modules_to_save": ["norm"]}),
    "saved-tied": (TIED, {"targets": ATTENTION, "modules_to_save": ["embed_tokens", "lm_head"]}),
    "saved-tied-table": (TIED, {"targets": ATTENTION, "modules_to_save": ["embed_tokens"]}),
    "saved-tied-head": (TIED, {"targets": ATTENTION, "modules_to_save": ["lm_head"]}),
    "saved-target": (LLAMA, {"targets": ["q_proj", "lm_head"], "modules_to_save": ["lm_head"]}),
    "table": (LLAMA, {"targets": ["q_proj", "embed_tokens", "lm_head"]}),
    "oft": (LLAMA, {"targets": ALL, "oft_block_size": 16}),
    "oft-nearest": (LLAMA, {"targets": ["down_proj"], "oft_block_size": 30}),
    "experts": (MOE, {"targets": ["q_proj"], "target_parameters": ["experts.gate_up_proj", "experts.down_proj"]}),
    "experts-down": (MOE, {"targets": ["q_proj"], "target_parameters": ["mlp.experts.down_proj"]}),
    "experts-all": (MOE, {"targets": ["all-linear"]}),
    "experts-named": (OLMOE, {"targets": ["q_proj", "gate_proj", "up_proj"]}),
    "experts-shared": (ERNIE, {"targets": ["all-linear"]}),
    "experts-mixtral": (MIXTRAL, {"targets": ["q_proj", "w1", "w2", "w3", "gate"]}),
    "streams": (GEMMA3N, {"targets": ATTENTION}),
    "streams-all": (GEMMA3N, {"targets": [*ALL, *OF_GEMMA3N]}),
    "classifier": ({**LLAMA, "architectures": ["LlamaForSequenceClassification"], "num_labels": 2},
                   {"targets": ATTENTION}),
}


def build(config: dict, words: dict, dtype: torch.dtype) -> torch.nn.Module:
    options = {k: v for k, v in config.items() if k not in ("model_type", "architectures")}
    parsed = transformers.AutoConfig.for_model(
        config["model_type"], **options, use_cache=False, pad_token_id=0
    )
    classifies = "architectures" in config
    cls = transformers.AutoModelForSequenceClassification if classifies else transformers.AutoModelForCausalLM
    torch.manual_seed(0)
    model = cls.from_config(parsed, attn_implementation="sdpa", dtype=dtype)
    if "oft_block_size" in words:
        rotations = peft.OFTConfig(
            oft_block_size=words["oft_block_size"], target_modules=words["targets"], task_type="CAUSAL_LM"
        )
        return peft.get_peft_model(model, rotations).train()
    adapters = peft.LoraConfig(
        r=8,
        # peft's word for every linear layer stands alone.
        target_modules="all-linear" if words["targets"] == ["all-linear"] else words["targets"],
        lora_dropout=words.get("dropout", 0.0),
        use_dora=words.get("dora", False),
        modules_to_save=words.get("modules_to_save"),
        target_parameters=words.get("target_parameters"),
        task_type="SEQ_CLS" if classifies else "CAUSAL_LM",
    )
    return peft.get_peft_model(model, adapters).train()


def measure(name: str, config: dict, words: dict, batch: int, sequence: int, dtype: torch.dtype) -> dict:
    model = build(config, words, dtype)
    trained = [p for p in model.parameters() if p.requires_grad]
    ids = torch.randint(1, config["vocab_size"], (batch, sequence))
    labels = torch.zeros(batch, dtype=torch.long) if "architectures" in config else ids
    return {
        "case": name,
        "config": config,
        "lora": {"rank": 8, **words},
        "attention": "sdpa",
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "sequence": sequence,
        "parameters": sum(p.numel() for p in model.parameters()),
        "trained": sum(p.numel() for p in trained),
        "trained_bytes": sum(p.numel() * p.element_size() for p in trained),
        **saved_storages(model, {"input_ids": ids, "labels": labels}, alive=True),
    }


def main() -> None:
    args = arguments(__doc__, "saved_tensors_adapters.json")
    torch.set_num_threads(1)
    cases = []
    for name, (config, words) in CASES.items():
        if not args.only or name == args.only:
            cases += [measure(name, config, words, *run) for run in RUNS]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors_adapters.py", cases, {})


if __name__ == "__main__":
    main()
