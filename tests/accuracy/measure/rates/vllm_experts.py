"""Experts as vLLM multiplies them on Hopper: its Triton kernel over the experts' products, what sorts the rows before it
and what adds an expert's results after it, timed by the GPU alone. Writes one `shardplan.rates/1` record.

    python vllm_experts.py --output h100-vllm-experts.json
    python vllm_experts.py --output h100-vllm-experts-2025.json --tiles-of-2025

Rows go to experts at random, all alike. Kernels are first compiled by so many processes at once (--processes), then
timed one after the other. A rate says whether vLLM has a configuration for its shape on this GPU ("tuned") or takes
its default one, and the tiles it has there.
"""
import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

# (experts, of a token, width of one on this GPU, width of the network): Qwen3-30B-A3B on one and two GPUs, Qwen3-235B
# on four and eight, Mixtral 8x7B on one, two and eight, OLMoE, gpt-oss-20b, GLM-4.5-Air and GLM-4.5 on eight.
SHAPES = [(128, 8, 768, 2048), (128, 8, 384, 2048), (128, 8, 384, 4096), (128, 8, 192, 4096), (8, 2, 14336, 4096),
          (8, 2, 7168, 4096), (8, 2, 1792, 4096), (64, 8, 1024, 2048), (32, 4, 2880, 2880), (128, 8, 1408, 4096),
          (160, 8, 192, 5120)]
# Blocks of 128 x 128 in fp8: DeepSeek-V3 on eight GPUs, Qwen3-30B-A3B, Qwen3-235B on four.
BLOCK_SHAPES = [(256, 8, 256, 7168), (128, 8, 768, 2048), (128, 8, 384, 4096)]
SHAPES_OF_2025 = [(128, 8, 768, 2048), (8, 2, 14336, 4096), (128, 8, 1408, 4096), (160, 8, 192, 5120)]
BLOCK_SHAPES_OF_2025 = [(128, 8, 384, 4096)]
TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 8192]
BLOCK = 128


def points(of_2025):
    wide, narrow = (SHAPES_OF_2025, BLOCK_SHAPES_OF_2025) if of_2025 else (SHAPES, BLOCK_SHAPES)
    for blocks, shapes in ((False, wide), (True, narrow)):
        for shape in shapes:
            for tokens in TOKENS:
                yield blocks, shape, tokens


def weights_of(blocks, shape):
    import torch

    experts, _, width, hidden = shape
    made = []
    for rows, columns in ((2 * width, hidden), (hidden, width)):
        weight = torch.empty(experts, rows, columns, device="cuda", dtype=torch.bfloat16)
        for expert in weight:
            expert.normal_(std=0.02)
        if not blocks:
            made.append((weight, None))
            continue
        scales = torch.ones(experts, -(-rows // BLOCK), -(-columns // BLOCK), device="cuda")
        made.append((weight.to(torch.float8_e4m3fn), scales))
    return made


def work_of(blocks, shape, tokens, weights):
    import torch
    from vllm.model_executor.layers.fused_moe.config import fp8_w8a8_moe_quant_config
    from vllm.model_executor.layers.fused_moe.fused_moe import fused_experts

    experts, of_token, _, hidden = shape
    (first, first_scales), (second, second_scales) = weights
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    chances, chosen = torch.topk(torch.rand(tokens, experts, device="cuda"), of_token)
    chosen = chosen.to(torch.int32)
    form = (fp8_w8a8_moe_quant_config(w1_scale=first_scales, w2_scale=second_scales, block_shape=[BLOCK, BLOCK])
            if blocks else None)
    hit = int(chosen.unique().numel())
    return hit, lambda: fused_experts(x, first, second, chances, chosen, quant_config=form)


def tiles_of(blocks, shape, tokens):
    from vllm.model_executor.layers.fused_moe import fused_moe

    experts, of_token, width, hidden = shape
    block_shape = [BLOCK, BLOCK] if blocks else None
    kind = "fp8_w8a8" if blocks else None
    tuned = fused_moe.get_moe_configs(experts, width, kind, *(block_shape or (0, 0)))
    config = fused_moe.try_get_optimal_moe_config((experts, 2 * width, hidden), (experts, hidden, width), of_token,
                                                  kind, tokens, block_shape=block_shape)
    return bool(tuned), config


def tiles_of_2025(blocks, shape, tokens):
    """vLLM 0.11 and SGLang 0.5, fused_moe.py, get_default_config."""
    if blocks:
        return {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": BLOCK, "BLOCK_SIZE_K": BLOCK, "GROUP_SIZE_M": 32, "SPLIT_K": 1,
                "num_warps": 4, "num_stages": 3}
    m, n, k, group = (16, 32, 64, 1) if tokens <= shape[0] else (64, 64, 32, 8)
    return {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": group, "SPLIT_K": 1}


def kernels_of(work):
    """Seconds of each kernel of one call, in order of time."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    calls = 5
    with profile(activities=[ProfilerActivity.CUDA]) as watched:
        for _ in range(calls):
            work()
        torch.cuda.synchronize()
    sums = {}
    for event in watched.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            sums.setdefault(event.name[:60], []).append(event.device_time)
    return [{"name": name, "calls": len(times) / calls, "seconds": sum(times) / calls / 1e6}
            for name, times in sorted(sums.items(), key=lambda item: -sum(item[1]))]


def each(chosen, of_2025, visit):
    """`visit(blocks, shape, tokens, work, hit)` for the points; a shape's weights are made once."""
    import contextlib

    import torch
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.fused_moe import override_config

    made, weights = None, None
    with set_current_vllm_config(VllmConfig()):
        for blocks, shape, tokens in chosen:
            if made != (blocks, shape):
                weights = None
                torch.cuda.empty_cache()
                made, weights = (blocks, shape), weights_of(blocks, shape)
            hit, work = work_of(blocks, shape, tokens, weights)
            tiles = (override_config(tiles_of_2025(blocks, shape, tokens)) if of_2025
                     else contextlib.nullcontext())
            with tiles:
                visit(blocks, shape, tokens, work, hit)


def compile_all(index, processes, of_2025):
    import torch

    def once(blocks, shape, tokens, work, hit):
        work()
        torch.cuda.synchronize()

    each(list(points(of_2025))[index::processes], of_2025, once)


def measure(output, of_2025):
    import vllm
    from environment import environment
    from timing import gpu_seconds

    rates = []

    def timed(blocks, shape, tokens, work, hit):
        tuned, config = tiles_of(blocks, shape, tokens)
        rates.append({"kind": "experts", "dtype": "float8_blocks" if blocks else "bfloat16",
                      "experts": shape[0], "of_token": shape[1], "width": shape[2], "hidden": shape[3],
                      "tokens": tokens, "experts_hit": hit, "tuned": tuned, "config": config,
                      "seconds": gpu_seconds(work), "kernels": kernels_of(work)})
        print(json.dumps({k: v for k, v in rates[-1].items() if k not in ("config", "kernels")}), flush=True)
        record = {"schema": "shardplan.rates/1",
                  "producer": {"program": "tests/accuracy/measure/rates/vllm_experts.py"},
                  "environment": environment(vllm=vllm.__version__), "rates": rates}
        with open(output, "w", encoding="utf-8") as file:
            json.dump(record, file)

    each(points(of_2025), of_2025, timed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--compile", type=int, help="compile the kernels of this process and end")
    parser.add_argument("--tiles-of-2025", action="store_true")
    options = parser.parse_args()
    if options.compile is not None:
        compile_all(options.compile, options.processes, options.tiles_of_2025)
    else:
        compiling = [subprocess.Popen([sys.executable, *sys.argv, "--compile", str(i)])
                     for i in range(options.processes)]
        for process in compiling:
            process.wait()
        measure(options.output, options.tiles_of_2025)
