"""Case lists: named jobs in the contract's form (shardplan.job/1), models resolved to their config objects."""
import json
import os

DTYPES_OF_PRECISION = {
    # preset: (parameter dtype, autocast dtype or None)
    "fp32": ("float32", None),
    "bf16-pure": ("bfloat16", None),
    "bf16-autocast": ("float32", "bfloat16"),
    "fp16-autocast": ("float32", "float16"),
    "bf16-master": ("bfloat16", None),
    "fp16-master": ("float16", None),
}


def load_cases(path):
    """Reads [{"name", "job"}]; a model may be a file beside the list, or a name."""
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    here = os.path.dirname(os.path.abspath(path))
    for case in cases:
        model = case["job"]["model"]
        if isinstance(model, str) and model.endswith(".json"):
            with open(os.path.join(here, model), encoding="utf-8") as file:
                case["job"]["model"] = json.load(file)
    names = [case["name"] for case in cases]
    if len(set(names)) != len(names):
        raise SystemExit(f"{path}: two cases have the same name")
    return cases


def _preset(job):
    """Of a job's precision: a name, or an object with one. A ds_config says it too."""
    config = job.get("framework", {}).get("ds_config", {})
    told = "bf16-pure" if config.get("bf16", {}).get("enabled") else "fp32"
    precision = job.get("precision", told)
    return precision["preset"] if isinstance(precision, dict) else precision


def parameter_dtype(job):
    return DTYPES_OF_PRECISION[_preset(job)][0]


def autocast_dtype(job):
    return DTYPES_OF_PRECISION[_preset(job)][1]


def world_of(job):
    """GPUs of the job: its cluster is written "NxGPU" here, alone or as the `name` of an object."""
    cluster = job["cluster"]
    return int((cluster["name"] if isinstance(cluster, dict) else cluster).split("x")[0])


def data_ranks(job, world):
    """Ranks with samples of their own: experts are divided over ranks that have some."""
    parallel = job.get("parallel", {})
    for degree in ("tensor", "sequence", "context", "pipeline"):
        world //= parallel.get(degree, 1)
    return world
