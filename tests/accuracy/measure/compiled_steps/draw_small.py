"""The same draw as sweep.py's, as a list of runs of HF Trainer on a GPU.

    python compiled_steps/draw_small.py --seed 29 --cases 22 --cluster 1xH200-SXM-141GB --names h200-1x-hf --output cases/compiled_swept_h200.json
"""
import argparse
import json
import random

from sweep import draw, words_of
from draw_cases import catalogue_by_name


def main():
    parser = argparse.ArgumentParser()
    for key in ("--cluster", "--names", "--output"):
        parser.add_argument(key, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, required=True)
    options = parser.parse_args()
    rng, catalogue, cases = random.Random(options.seed), catalogue_by_name(), []
    while len(cases) < options.cases:
        model, job = draw(rng, catalogue)
        job["workload"].get("lora", {}).pop("quantization", None)
        job.update(cluster=options.cluster, gradient_clipping=1.0)
        cases.append({"name": f"{options.names}-{words_of(model, job)}", "env": {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}, "job": job})
    with open(options.output, "w", encoding="utf-8") as file:
        file.write("[\n " + ",\n ".join(json.dumps(case) for case in cases) + "\n]\n")


main()
