"""Prefill and decode with a KV cache, plain PyTorch on one GPU: transformers' forward, one token at a time."""
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from account import record_account
from models import build_model, parameter_counts
from phases import PhaseRecorder, clean, memory_now
from runner import run_cases

LONGEST_ACCOUNT = 64  # new tokens: the history of a longer round takes longer to replay than the round itself
ROUNDS = 2  # the first one compiles, picks kernels and creates workspaces; the last one counts


class Generation:
    """One round: the prompt in one forward that returns the last position's logits, then token by token."""

    def __init__(self, job, config, model, device):
        work = job["workload"]
        self.model, self.new_tokens = model, work["new_tokens"]
        self.prompt = torch.randint(0, config.vocab_size, (work["batch"], work["prompt_length"]), device=device)
        self.recorder = PhaseRecorder()
        self.seconds = {}

    def _timed(self, phase, function):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        self.seconds[phase] = time.perf_counter() - start
        return result

    def _prefill(self):
        out = self.model(input_ids=self.prompt, use_cache=True, logits_to_keep=1)
        self.recorder.end("prefill")
        return out.past_key_values, out.logits[:, -1:].argmax(-1)

    def _decode(self, cache, token):
        for _ in range(self.new_tokens):
            out = self.model(input_ids=token, past_key_values=cache, use_cache=True)
            token = out.logits[:, -1:].argmax(-1)
            del out
        self.recorder.end("decode")

    @torch.no_grad()
    def run(self):
        self.recorder.begin()
        cache, token = self._timed("prefill", self._prefill)
        self._timed("decode", lambda: self._decode(cache, token))


def run_rounds(generation, with_account):
    """One rank's memory in the last of the rounds."""
    clean()
    model_bytes = torch.cuda.memory_allocated()
    for _ in range(ROUNDS):
        generation.run()
    phases = {"model": model_bytes, **generation.recorder.values}
    rank = {"phases": phases, "allocated_peak": max(phases["prefill_peak"], phases["decode_peak"]), **memory_now()}
    if with_account and generation.new_tokens <= LONGEST_ACCOUNT:
        rank["account"] = record_account(generation.run, generation.recorder)
    return rank


def measure(case, device, with_account):
    job = case["job"]
    config, model = build_model(job, device)
    model.eval()
    generation = Generation(job, config, model, device)
    rank = run_rounds(generation, with_account)
    work, seconds = job["workload"], generation.seconds
    return parameter_counts(model), rank, {
        "prefill_seconds": seconds["prefill"],
        "decode_seconds": seconds["decode"],
        "decode_tokens_per_second": work["batch"] * work["new_tokens"] / seconds["decode"],
    }


if __name__ == "__main__":
    run_cases("run_inference.py", measure, torch.device("cuda:0"))
