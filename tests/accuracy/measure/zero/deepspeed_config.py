"""The ds_config of a job: the one it carries, or the plain one its zero_stage stands for."""
import copy

BLOCK_OF_PRECISION = {
    "bf16-master": {"bf16": {"enabled": True}},
    # A scale low enough that no step is skipped: skipped steps have no optimizer states.
    "fp16-master": {"fp16": {"enabled": True, "initial_scale_power": 8}},
    "fp32": {},
    "bf16-autocast": {"torch_autocast": {"enabled": True, "dtype": "bfloat16"}},
}


def ds_config(job):
    framework, work = job["framework"], job["workload"]
    if "ds_config" in framework:
        config = copy.deepcopy(framework["ds_config"])
    else:
        config = {"zero_optimization": {"stage": framework["zero_stage"]},
                  "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
                  "gradient_clipping": job["gradient_clipping"], **BLOCK_OF_PRECISION[job["precision"]]}
    config.setdefault("train_micro_batch_size_per_gpu", work["micro_batch"])
    config.setdefault("gradient_accumulation_steps", work["gradient_accumulation"])
    _check_agreement(job, config)
    config["steps_per_print"] = 10**9
    return config


def _check_agreement(job, config):
    """A record whose job and ds_config disagree would be worthless."""
    wanted = {"train_micro_batch_size_per_gpu": job["workload"]["micro_batch"],
              "gradient_accumulation_steps": job["workload"]["gradient_accumulation"],
              "gradient_clipping": job["gradient_clipping"]}
    for key, value in wanted.items():
        if config.get(key) != value:
            raise ValueError(f"ds_config {key} is {config.get(key)}, the job says {value}")
    for block in BLOCK_OF_PRECISION[job["precision"]]:
        if not config.get(block, {}).get("enabled"):
            raise ValueError(f"precision {job['precision']} needs {block}.enabled in the ds_config")
