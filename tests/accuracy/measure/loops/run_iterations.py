"""A hundred iterations of GRPO on one GPU whose answers end by themselves, and what the allocator comes to hold.

The answers are random tokens, as an engine elsewhere would hand them over; each batch is as long as its longest one.
Their lengths are exponential, cut at `longest_answer` (core/serving/answer_lengths.h). `"lengths": "drawn"` beside the
job takes those of core/estimate/iterations.cpp in their order; else they are drawn with a seed.
"""
import math
import os
import random
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from models import parameter_counts
from phases import memory_now
from run_preference import PreferenceStep, build_step, timed
from runner import run_cases

ITERATIONS, EIGHTHS, GOLDEN = 100, 8, 0.6180339887498949


def _scale(mean, longest):
    low, high = mean, 64 * longest
    for _ in range(80):
        scale = (low + high) / 2
        low, high = (scale, high) if scale * -math.expm1(-longest / scale) < mean else (low, scale)
    return high


def longest_answers(mean, longest, answers, as_drawn):
    scale = _scale(mean, longest)
    if as_drawn:
        of = [min(longest, -scale * math.log(1 - ((i + 0.5) / EIGHTHS) ** (1 / answers))) for i in range(EIGHTHS)]
        return [longest if i == ITERATIONS // 2 else round(of[int((i + 1) * GOLDEN % 1 * EIGHTHS)])
                for i in range(ITERATIONS)]
    draw = random.Random(1)
    return [max(1, round(min(longest, max(draw.expovariate(1 / scale) for _ in range(answers)))))
            for _ in range(ITERATIONS)]


class IterationStep(PreferenceStep):
    """The engine's answers in place of the policy's own."""
    answer = 0

    def _generate(self, prompts):
        return torch.cat([prompts, self._tokens(prompts.shape[0], self.answer)], 1)


def measure(case, device, _):
    work = case["job"]["workload"]
    step, model_bytes = build_step(IterationStep, case["job"], device)
    answers = longest_answers(work["new_tokens"], work["rollout"]["longest_answer"], work["micro_batch"],
                              case.get("lengths") == "drawn")
    seconds, losses, reserved, peak = [], [], [], 0
    for answer in answers:
        step.answer = answer
        took, loss = timed(step)
        seconds.append(took)
        losses.append(loss)
        reserved.append(torch.cuda.memory_reserved())
        peak = max(peak, step.recorder.whole_peak)
    rank = {"phases": {"model": model_bytes, **step.recorder.values}, "allocated_peak": peak,
            **memory_now()}
    return parameter_counts(step.policy), rank, {
        "step_seconds": sorted(seconds)[len(seconds) // 2], "steps": seconds, "losses": losses,
        "answers": answers, "reserved_after": reserved}


if __name__ == "__main__":
    run_cases("run_iterations.py", measure, torch.device("cuda:0"))
