"""saved_tensors.py for networks whose layers have a state: writes tests/golden/saved_tensors_states.json. They run as
transformers runs them where no library of kernels is installed.

    python3 tests/accuracy/measure/saved_tensors_states.py
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
CASES = {
    "lfm2": {"model_type": "lfm2", **TEXT, "layer_types": ["conv", "full_attention", "conv"]},
    "lfm2-bias": {"model_type": "lfm2", **TEXT, "layer_types": ["conv", "conv", "full_attention"], "conv_bias": True,
                  "tie_word_embeddings": False},
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
        for attention in ("sdpa", "eager"):
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
