"""What TRL's GRPOTrainer does in Python around an engine's answers, timed without a GPU: a network that takes no time, and
an engine that has answered already.

    PYTHONPATH=TRL:SITE python host_costs/time_trl_host.py

Prints microseconds and Python calls (data/probe/host.py) of an iteration, by sequences and tokens of an answer, without
the passes of the network. docs/explanation/rlhf.md has what this printed, with TRL 1.16.0.
"""
import os
import random
import statistics
import sys
import tempfile
import time
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import stand_in_datasets

try:
    from datasets import Dataset
except ImportError:
    stand_in_datasets.install()
    from datasets import Dataset

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.generation import vllm_generation
from trl.trainer import grpo_trainer

import host_probe
from words import WORDS, text, tokenizer

PROMPT, STEPS, PROBES = 256, 9, 15


class Answered(vllm_generation.VLLMGeneration):
    """generate() as TRL's, of answers that are there."""

    def _init_vllm(self):
        self.enable_sleep_mode = False
        self.seconds = 0

    def sync_weights(self):
        pass

    def generate(self, prompts, images, num_generations, profiler=None):
        begin = time.perf_counter()
        outputs = [self._output(prompt) for prompt in prompts]
        self.seconds = time.perf_counter() - begin
        answers = [one.token_ids for output in outputs for one in output.outputs]
        logprobs, words = vllm_generation.extract_logprobs(outputs)
        return [output.prompt_token_ids for output in outputs], answers, logprobs, words

    def _output(self, prompt):
        answer = [random.randrange(2, WORDS) for _ in range(self.max_completion_length)]
        found = [{token: SimpleNamespace(logprob=-6.9, rank=1)} for token in answer]
        return SimpleNamespace(prompt_token_ids=prompt, outputs=[SimpleNamespace(token_ids=answer, logprobs=found)])


def _timed(owner, name, seconds):
    inner = getattr(owner, name)

    def call(*given, **named):
        begin = time.perf_counter()
        result = inner(*given, **named)
        seconds.append(time.perf_counter() - begin)
        return result

    setattr(owner, name, call)


def _trainer(folder, sequences, tokens):
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                                         num_key_value_heads=1, vocab_size=WORDS + 2))
    samples = Dataset.from_list([{"prompt": text(PROMPT)} for _ in range(64)])
    arguments = GRPOConfig(output_dir=folder, per_device_train_batch_size=sequences, num_generations=4, use_cpu=True,
                           max_completion_length=tokens, max_steps=STEPS, report_to=[], use_vllm=True, vllm_mode="colocate",
                           save_strategy="no", logging_strategy="no", disable_tqdm=True, beta=0.0, bf16=False)
    return GRPOTrainer(model=model, args=arguments, train_dataset=samples, processing_class=tokenizer(),
                       reward_funcs=lambda completions, **rest: [random.random() for _ in completions])


def _iteration(sequences, tokens):
    """Seconds of TRL's own in an iteration, outside of the network and of making the answers."""
    whole, passes = [], []
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(folder, sequences, tokens)
        _timed(trainer, "_generate_and_score_completions", whole)
        _timed(trainer, "_get_per_token_logps_and_entropies", passes)
        own = []
        inner = trainer._prepare_inputs

        def prepared(batch):
            before = len(whole), len(passes)
            result = inner(batch)
            if len(whole) > before[0]:
                own.append(whole[-1] - sum(passes[before[1]:]) - trainer.vllm_generation.seconds)
            return result

        trainer._prepare_inputs = prepared
        trainer.train()
    return statistics.median(own[2:])


def main():
    torch.set_num_threads(1)
    grpo_trainer.VLLMGeneration = Answered
    call = min(host_probe.calls()["python_call_seconds"] for _ in range(PROBES))
    print(f"a Python call {call * 1e6:.2f} us")
    for sequences, tokens in ((8, 16), (8, 256), (8, 1024), (32, 16), (32, 256)):
        taken = _iteration(sequences, tokens)
        print(f"{sequences} answers of {tokens} tokens: {taken * 1e3:.1f} ms = {taken / call:.0f} calls")


if __name__ == "__main__":
    main()
