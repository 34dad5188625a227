"""Steps of preference training on one GPU, plain PyTorch: a policy that trains and a frozen reference beside it.

dpo: `micro_batch` pairs, a preferred and a rejected sequence each, in one forward of the policy; the reference's
forward follows while the policy's activations are alive, as in TRL's DPOTrainer. grpo: the policy answers prompts with
a KV cache, the reference scores the answers, then one step of the policy over all of them.
"""
import os
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from account import record_account
from models import build_model, make_config, parameter_counts
from optimizers import make_optimizer
from phases import PhaseRecorder, clean, memory_now
from runner import run_cases

STEPS = 4
BETA = 0.1


def _log_probabilities(model, tokens):
    """Of each token after the first, in fp32: [sequences, length - 1]."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1].float()
    targets = tokens[:, 1:]
    return -F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1),
                            reduction="none").view(targets.shape)


class PreferenceStep:
    def __init__(self, job, config, policy, reference, device):
        self.work, self.policy, self.reference = job["workload"], policy, reference
        self.config, self.device = config, device
        self.parameters = [p for p in policy.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(job, self.parameters)
        self.recorder = PhaseRecorder()
        self.run = {"dpo": self._dpo, "grpo": self._grpo}[self.work["algorithm"]]

    def _tokens(self, sequences, length):
        return torch.randint(0, self.config.vocab_size, (sequences, length), device=self.device)

    @torch.no_grad()
    def _reference_scores(self, tokens):
        return _log_probabilities(self.reference, tokens)

    def _update(self, loss):
        loss.backward()
        self.recorder.end("backward")
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.recorder.end("step")
        return loss.detach()

    def _dpo(self):
        self.recorder.begin()
        tokens = self._tokens(2 * self.work["micro_batch"], self.work["sequence_length"])
        ours = _log_probabilities(self.policy, tokens).sum(-1)
        self.recorder.end("forward")
        theirs = self._reference_scores(tokens).sum(-1)
        self.recorder.end("reference")
        chosen, rejected = (ours - theirs).chunk(2)
        return self._update(-F.logsigmoid(BETA * (chosen - rejected)).mean())

    @torch.no_grad()
    def _generate(self, prompts):
        self.policy.eval()
        out = self.policy(input_ids=prompts, use_cache=True, logits_to_keep=1)
        tokens = [prompts, out.logits[:, -1:].argmax(-1)]
        for _ in range(self.work["new_tokens"] - 1):
            out = self.policy(input_ids=tokens[-1], past_key_values=out.past_key_values, use_cache=True)
            tokens.append(out.logits[:, -1:].argmax(-1))
        self.policy.train()
        return torch.cat(tokens, 1)

    def _grpo(self):
        self.recorder.begin()
        tokens = self._generate(self._tokens(self.work["micro_batch"], self.work["prompt_length"]))
        self.recorder.end("generation")
        theirs = self._reference_scores(tokens)
        self.recorder.end("experience")
        ours = _log_probabilities(self.policy, tokens)
        gap = theirs - ours
        ratio = torch.exp(ours - ours.detach())
        loss = (BETA * (torch.exp(gap) - gap - 1) - ratio).mean()
        self.recorder.end("forward")
        return self._update(loss)


def build_step(kind, job, device):
    """(a step of this class with both models, bytes of these)"""
    _, policy = build_model(job, device)
    _, reference = build_model(job, device)
    reference.eval().requires_grad_(False)
    step = kind(job, make_config(job), policy, reference, device)
    clean()
    return step, torch.cuda.memory_allocated()


def timed(step):
    """(seconds, loss) of a step"""
    torch.cuda.synchronize()
    start = time.perf_counter()
    loss = float(step.run())
    torch.cuda.synchronize()
    return time.perf_counter() - start, loss


def measure(case, device, with_account):
    step, model_bytes = build_step(PreferenceStep, case["job"], device)
    seconds, losses = zip(*(timed(step) for _ in range(STEPS)))
    phases = {"model": model_bytes, **step.recorder.values}
    rank = {"phases": phases, "allocated_peak": step.recorder.whole_peak, **memory_now()}
    if with_account:
        rank["account"] = record_account(step.run, step.recorder)
    return parameter_counts(step.policy), rank, {
        "step_seconds": min(seconds[2:]), "steps": seconds, "losses": losses}


if __name__ == "__main__":
    run_cases("run_preference.py", measure, torch.device("cuda:0"))
