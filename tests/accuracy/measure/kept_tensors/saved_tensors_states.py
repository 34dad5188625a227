"""saved_tensors.py for networks whose layers have a state: writes tests/golden/saved_tensors_states.json. They run as
transformers runs them where no library of kernels is installed.

    python3 tests/accuracy/measure/kept_tensors/saved_tensors_states.py
"""

import torch

from autograd_storages import arguments, print_cases, saved_storages, write_golden
from saved_tensors_families import build, inputs_of

RUNS = [(2, 128, torch.float32), (2, 128, torch.bfloat16), (1, 192, torch.bfloat16)]

TEXT = {
    "hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 256, "pad_token_id": 0,
    "head_dim": 32,
}
DELTA = {
    **TEXT, "linear_num_value_heads": 4, "linear_num_key_heads": 4, "linear_key_head_dim": 32,
    "linear_value_head_dim": 64, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
}
EXPERTS = {
    "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 96, "shared_expert_intermediate_size": 64,
}
MAMBA = {
    "hidden_size": 128, "num_hidden_layers": 2, "vocab_size": 500, "pad_token_id": 0, "state_size": 16, "num_heads": 8,
    "head_dim": 32, "n_groups": 2, "chunk_size": 64,
}
FALCON_H1 = {
    **TEXT, "mamba_d_ssm": 256, "mamba_n_heads": 8, "mamba_d_head": 32, "mamba_n_groups": 2, "mamba_d_state": 16,
    "mamba_chunk_size": 64, "num_hidden_layers": 2,
}
JAMBA = {
    **{k: v for k, v in TEXT.items() if k != "head_dim"}, "num_hidden_layers": 3, "num_experts": 4,
    "num_experts_per_tok": 2, "attn_layer_period": 3, "attn_layer_offset": 1, "mamba_d_state": 8, "mamba_dt_rank": 8,
}
NEMOTRON_H = {
    **TEXT, "layers_block_type": ["mamba", "attention", "moe", "mlp"], "num_hidden_layers": 4, "mamba_num_heads": 8,
    "mamba_head_dim": 32, "n_groups": 2, "ssm_state_size": 16, "chunk_size": 64, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 96, "moe_shared_expert_intermediate_size": 160,
}
GRANITE4 = {
    **TEXT, "layer_types": ["mamba", "attention", "mamba"], "mamba_n_heads": 8, "mamba_n_groups": 1, "mamba_d_state": 16,
    "mamba_chunk_size": 64, "shared_intermediate_size": 160,
}
CASES = {
    "mamba": {"model_type": "mamba", **MAMBA, "num_hidden_layers": 2, "state_size": 8, "time_step_rank": 8},
    "mamba-bias": {"model_type": "mamba", **MAMBA, "state_size": 8, "time_step_rank": 8, "residual_in_fp32": False,
                   "use_bias": True, "use_conv_bias": False, "tie_word_embeddings": False},
    "mamba2": {"model_type": "mamba2", **MAMBA},
    "mamba2-padded": {"model_type": "mamba2", **MAMBA, "chunk_size": 80, "residual_in_fp32": False, "use_bias": True,
                      "tie_word_embeddings": True},
    "falcon_h1": {"model_type": "falcon_h1", **FALCON_H1},
    "falcon_h1-norm": {"model_type": "falcon_h1", **FALCON_H1, "mamba_rms_norm": True, "attention_bias": True},
    "falcon_h1-gate-first": {"model_type": "falcon_h1", **FALCON_H1, "mamba_rms_norm": True,
                             "mamba_norm_before_gate": False, "projectors_bias": True},
    "jamba": {"model_type": "jamba", **JAMBA},
    "nemotron_h": {"model_type": "nemotron_h", **NEMOTRON_H},
    "nemotron_h-latent": {"model_type": "nemotron_h", **NEMOTRON_H, "moe_latent_size": 64, "mlp_bias": True,
                          "norm_topk_prob": False},
    "lfm2": {"model_type": "lfm2", **TEXT, "layer_types": ["conv", "full_attention", "conv"]},
    "lfm2-bias": {"model_type": "lfm2", **TEXT, "layer_types": ["conv", "conv", "full_attention"], "conv_bias": True,
                  "tie_word_embeddings": False},
    "lfm2_moe": {"model_type": "lfm2_moe", **TEXT, "layer_types": ["conv", "full_attention", "conv"],
                 "num_dense_layers": 1, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 96},
    "lfm2_moe-plain": {"model_type": "lfm2_moe", **TEXT, "layer_types": ["conv", "conv", "full_attention"],
                       "num_dense_layers": 0, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 96,
                       "use_expert_bias": False, "norm_topk_prob": False, "tie_word_embeddings": False},
    "granitemoehybrid": {"model_type": "granitemoehybrid", **GRANITE4, "num_local_experts": 8,
                         "num_experts_per_tok": 2},
    "granitemoehybrid-rope": {"model_type": "granitemoehybrid", **GRANITE4, "num_local_experts": 0,
                              "position_embedding_type": "rope", "mamba_proj_bias": True, "mamba_n_groups": 2},
    "granitemoehybrid-dense": {"model_type": "granitemoehybrid", **GRANITE4, "num_local_experts": 0,
                               "layer_types": ["attention"] * 3, "position_embedding_type": "rope",
                               "tie_word_embeddings": True},
    "qwen3_next": {"model_type": "qwen3_next", **DELTA, **EXPERTS, "mlp_only_layers": [0]},
    "qwen3_next-groups": {"model_type": "qwen3_next", **DELTA, **EXPERTS, "linear_num_key_heads": 2,
                          "mlp_only_layers": [0, 1, 2]},
    "qwen3_5_text": {"model_type": "qwen3_5_text", **DELTA, "linear_num_key_heads": 2},
}


def measure(name: str, config: dict, attention: str, batch: int, sequence: int, dtype: torch.dtype) -> dict:
    model = build(config, attention, dtype)
    return {
        "case": name,
        "config": config,
        "attention": attention,
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "sequence": sequence,
        **saved_storages(model, inputs_of(config, batch, sequence), alive=True),
    }


def main() -> None:
    args = arguments(__doc__, "saved_tensors_states.json")
    torch.set_num_threads(1)
    cases, orders = [], {}
    for name, config in CASES.items():
        if args.only and name != args.only:
            continue
        # Classes without attention know no other name for it.
        for attention in ("eager",) if config["model_type"].startswith("mamba") else ("sdpa", "eager"):
            for batch, sequence, dtype in RUNS:
                cases.append(measure(name, config, attention, batch, sequence, dtype))
        model = build(config, "eager", torch.float32)
        orders[name] = [parameter for parameter, _ in model.named_parameters()]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors_states.py", cases, orders)


if __name__ == "__main__":
    main()
