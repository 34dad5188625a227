"""What vLLM's output processor makes of a pass's tokens, answers as text and as log-probabilities, timed without a GPU.

    PYTHONPATH=SITE python host_costs/time_vllm_host.py

Prints microseconds and Python calls (data/probe/host.py) of a pass, with and without log-probabilities.
docs/evidence/measurements.md has what this printed, with vLLM 0.25.1.
"""
import os
import random
import statistics
import sys
import time

import numpy
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest
from vllm.v1.engine.output_processor import OutputProcessor
from vllm.v1.outputs import LogprobsLists

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import host_probe
from words import tokenizer

PROMPT, TOKENS, ROUNDS, PROBES = 64, 128, 9, 15
VOCABULARY = 151_936


def _request(name, logprobs):
    parameters = SamplingParams(max_tokens=TOKENS, min_tokens=TOKENS, ignore_eos=True, logprobs=logprobs,
                                output_kind=RequestOutputKind.FINAL_ONLY)
    return EngineCoreRequest(request_id=name, prompt_token_ids=list(range(2, PROMPT + 2)), mm_features=None,
                             sampling_params=parameters, pooling_params=None, arrival_time=0.0, lora_request=None,
                             cache_salt=None, data_parallel_rank=None, external_req_id=name)


def _output(name, logprobs):
    token = random.randrange(VOCABULARY)
    lists = None if logprobs is None else LogprobsLists(numpy.array([[token]], dtype=numpy.int32),
                                                       numpy.array([[-11.0]], dtype=numpy.float32), numpy.array([7]))
    return EngineCoreOutput(request_id=name, new_token_ids=[token], new_logprobs=lists)


def _answers(words, sequences, logprobs):
    """Seconds of a pass in the output processor."""
    processor = OutputProcessor(words, log_stats=False)
    names = [str(number) for number in range(sequences)]
    for name in names:
        processor.add_request(_request(name, logprobs), None)
    passes = [[_output(name, logprobs) for name in names] for _ in range(TOKENS - 1)]
    begin = time.perf_counter()
    for outputs in passes:
        processor.process_outputs(outputs)
    return (time.perf_counter() - begin) / len(passes)


def main():
    words = tokenizer()
    cases = [(sequences, logprobs) for sequences in (1, 8, 64) for logprobs in (None, 0)]
    rounds = {case: [] for case in cases}
    for _ in range(ROUNDS):
        for case in cases:
            rounds[case].append(_answers(words, *case))
    call = min(host_probe.calls()["python_call_seconds"] for _ in range(PROBES))
    print(f"a Python call {call * 1e6:.2f} us")
    for (sequences, logprobs), seconds in rounds.items():
        taken = statistics.median(seconds)
        print(f"{sequences} sequences, {'no log-probabilities' if logprobs is None else 'log-probabilities'}: "
              f"{taken * 1e6:.0f} us = {taken / call:.0f} calls a pass")


if __name__ == "__main__":
    main()
