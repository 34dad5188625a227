"""What peft's ParamWrapper takes the host beside a plain block of Qwen3 with experts, on a CPU without a GPU.

    python3 time_param_wrapper.py

Two networks of four tiny blocks, one with both weights of its experts adapted (target_parameters): milliseconds of a
forward and a backward pass of both, and what a wrapper takes over a block.
"""
import statistics
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

LAYERS, WRAPPERS, TURNS, PASSES = 4, 8, 7, 20


def network():
    torch.manual_seed(0)
    config = Qwen3MoeConfig(hidden_size=16, intermediate_size=16, moe_intermediate_size=8, num_hidden_layers=LAYERS,
                            num_attention_heads=2, num_key_value_heads=2, head_dim=8, num_experts=4,
                            num_experts_per_tok=2, vocab_size=64)
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(torch.bfloat16)


def passes(model, tokens):
    """(forward, backward): milliseconds, medians."""
    forward, backward = [], []
    for _ in range(PASSES):
        start = time.perf_counter()
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        middle = time.perf_counter()
        loss.backward()
        forward.append(middle - start)
        backward.append(time.perf_counter() - middle)
    return 1e3 * statistics.median(forward), 1e3 * statistics.median(backward)


def main():
    torch.set_num_threads(1)
    plain = network().requires_grad_(False)
    plain.enable_input_require_grads()
    parameters = ["experts.gate_up_proj", "experts.down_proj"]
    adapted = get_peft_model(network(), LoraConfig(r=2, target_modules=[], target_parameters=parameters))
    adapted.enable_input_require_grads()
    adapted.to(torch.bfloat16)
    tokens = torch.randint(0, 64, (1, 8))
    for _ in range(TURNS):
        without, with_wrappers = passes(plain, tokens), passes(adapted, tokens)
        wrapper = (with_wrappers[0] - without[0]) / WRAPPERS
        print(f"plain {without[0]:.2f} {without[1]:.2f}, adapted {with_wrappers[0]:.2f} {with_wrappers[1]:.2f} ms: "
              f"a wrapper takes {wrapper / (without[0] / LAYERS):.2f} of a block forward")


if __name__ == "__main__":
    main()
