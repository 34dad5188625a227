"""Seconds of a pass of vLLM's by what its caller asks for: tokens alone, texts, texts and log-probabilities, with the
engine in the caller's process (as NeMo RL and TRL have it) and in one of its own.

    PYTHONPATH=SITE python host_costs/time_vllm_answers.py OUT MODEL.json inside|beside SEQUENCES,SEQUENCES,...

Writes OUT, anew after each load. The network has random weights; prompts are 64 random tokens, and all answers are as
long. `half_seconds` is of the second half of all passes, in which every sequence decodes.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

import host_probe
from run_vllm import engine_of, model_folder
from words import tokenizer

PROMPT, NEW = 64, 96
ASKED = {"tokens": {"detokenize": False}, "texts": {}, "log_probabilities": {"logprobs": 0}}


def run_load(engine, sequences, name, asked):
    """Mean seconds of a pass in the second half, and of the median step, of all requests together."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind
    sampling = SamplingParams(temperature=1.0, max_tokens=NEW, min_tokens=NEW, ignore_eos=True,
                              output_kind=RequestOutputKind.FINAL_ONLY, **asked)
    for i in range(sequences):
        ids = [100 + (i * PROMPT + j) * 7919 % 20000 for j in range(PROMPT)]
        engine.add_request(f"{name}-{i}", {"prompt_token_ids": ids}, sampling)
    begin = time.perf_counter()
    ends = []
    while engine.has_unfinished_requests():
        engine.step()
        ends.append(time.perf_counter())
    half = len(ends) // 2
    return {"passes": len(ends), "seconds": ends[-1] - begin, "half_seconds": (ends[-3] - ends[half]) / (len(ends) - 3 - half)}


def main():
    out, model, place, counts = sys.argv[1:]
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0" if place == "inside" else "1"
    from vllm import LLM
    from vllm.model_executor.models import registry
    from vllm.v1.worker import gpu_worker
    registry._run_in_subprocess = lambda function: function()
    gpu_worker.warmup_kernels = lambda *_: None
    with open(model, encoding="utf-8") as file:
        folder = model_folder({"model": json.load(file)})
    tokenizer().save_pretrained(folder)
    row = {"model": os.path.basename(model), "place": place, "calls_before": host_probe.calls(), "loads": []}
    begin = time.perf_counter()
    llm = LLM(folder, load_format="dummy", dtype="bfloat16", seed=0, max_model_len=4096, max_num_seqs=256,
              gpu_memory_utilization=0.6)
    row["start_seconds"] = time.perf_counter() - begin
    row["engine"] = engine_of(llm.llm_engine.vllm_config)
    for sequences in map(int, counts.split(",")):
        for asked, parameters in ASKED.items():
            run_load(llm.llm_engine, sequences, f"first-{sequences}-{asked}", parameters)
            row["loads"].append({"sequences": sequences, "asked": asked,
                                 **run_load(llm.llm_engine, sequences, f"{sequences}-{asked}", parameters)})
            row["calls_after"] = host_probe.calls()
            with open(out, "w", encoding="utf-8") as file:
                json.dump(row, file, indent=1)


if __name__ == "__main__":
    main()
