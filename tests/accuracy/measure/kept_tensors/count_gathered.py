"""How many parameters ZeRO-3 keeps gathered between forward and backward, against its three window sizes.

Counts parameters, not bytes, so it needs no GPU: DS_ACCELERATOR=cpu torchrun --nproc-per-node 2 count_gathered.py
"""
import deepspeed
import torch
import torch.distributed as dist
from deepspeed.runtime.zero.partition_parameters import ZeroParamStatus
from transformers import LlamaConfig, LlamaForCausalLM

# (max_reuse_distance, max_live_parameters, prefetch_bucket_size), elements
WINDOWS = (
    (0, 10**9, 0), (2 * 10**6, 10**9, 0), (4 * 10**6, 10**9, 0),
    (2 * 10**6, 2 * 10**6, 10**5), (4 * 10**6, 2 * 10**6, 10**5), (0, 3 * 10**6, 10**5), (0, 3 * 10**6, 10**4),
    (2 * 10**6, 4 * 10**6, 10**5), (2 * 10**6, 10**9, 10**4), (2 * 10**6, 10**9, 10**5),
)
PLAIN_LINEAR = torch.nn.functional.linear


def _engine(reuse, live, prefetch):
    torch.manual_seed(0)
    torch.nn.functional.linear = PLAIN_LINEAR  # ZeRO-3 replaces it for the whole process
    config = LlamaConfig(hidden_size=128, intermediate_size=512, num_hidden_layers=24, num_attention_heads=4,
                         vocab_size=2000, tie_word_embeddings=True, use_cache=False)
    model = LlamaForCausalLM(config).bfloat16()
    zero = {"stage": 3, "reduce_bucket_size": 10**6, "stage3_prefetch_bucket_size": prefetch,
            "stage3_max_reuse_distance": reuse, "stage3_max_live_parameters": live,
            "stage3_param_persistence_threshold": 1000}
    settings = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}, "zero_optimization": zero,
                "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "torch_adam": True}}, "steps_per_print": 10**9}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config=settings)
    return engine


def gathered_at_the_turn(reuse, live, prefetch):
    """(all parameters, those available after the third forward, when the trace is complete)"""
    engine = _engine(reuse, live, prefetch)
    tokens = torch.randint(0, 2000, (1, 16))
    for _ in range(3):
        loss = engine(input_ids=tokens, labels=tokens).loss
        parameters = list(engine.module.parameters())
        available = sum(p.ds_numel for p in parameters if p.ds_status == ZeroParamStatus.AVAILABLE)
        engine.backward(loss)
        engine.step()
    total = sum(p.ds_numel for p in parameters)
    engine.destroy()
    return total, available


if __name__ == "__main__":
    deepspeed.init_distributed("gloo")
    for windows in WINDOWS:
        total, available = gathered_at_the_turn(*windows)
        if dist.get_rank() == 0:
            print("reuse distance %d, max live %d, prefetch %d:" % windows, f"{available} of {total}", flush=True)
