"""A job of HF Trainer as what transformers.TrainingArguments says of it."""
from checkpointing import arguments as checkpointing_arguments
from jobs import autocast_dtype, parameter_dtype

# Job's name of an optimizer: that of TrainingArguments.optim (transformers/training_args.py, OptimizerNames).
OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adafactor": "adafactor",
    "adagrad": "adagrad",
    "sgd": "sgd",
    "lion": "lion_32bit",
    "adamw_8bit": "adamw_bnb_8bit",
    "adamw_4bit": "adamw_torch_4bit",
    "paged_adamw": "paged_adamw_32bit",
    "paged_adamw_8bit": "paged_adamw_8bit",
}
ADAMW = {"fused": "adamw_torch_fused", "foreach": "adamw_torch"}
KERNELS = ("rms_norm", "layer_norm", "rope", "swiglu", "geglu", "cross_entropy", "fused_linear_cross_entropy")


def optimizer_name(job):
    """`job["optimizer"]`: a name, or an object with one."""
    optimizer = job.get("optimizer", "adamw")
    if isinstance(optimizer, str):
        return optimizer
    return optimizer["name"]


def _optimizer(job):
    name, optimizer = optimizer_name(job), job.get("optimizer", {})
    if name == "adamw" and isinstance(optimizer, dict) and "implementation" in optimizer:
        return ADAMW[optimizer["implementation"]]
    return OPTIMIZERS[name]


def _mixed_precision(job):
    """Trainer's bf16 or fp16, which is autocast; a job whose parameters are bf16 trains under it too."""
    low = autocast_dtype(job) or parameter_dtype(job)
    return {"bfloat16": {"bf16": True}, "float16": {"fp16": True}, "float32": {}}[low]


def _kernels(job):
    kernels = job.get("kernels", "torch")
    if kernels == "torch":
        return {}
    if kernels == "liger":
        return {"use_liger_kernel": True}
    return {"use_liger_kernel": True, "liger_kernel_config": {name: name in kernels for name in KERNELS}}


def _compile(job):
    wanted = job.get("compile", False)
    if not wanted:
        return {}
    mode = wanted.get("mode") if isinstance(wanted, dict) else None
    return {"torch_compile": True, **({"torch_compile_mode": mode} if mode else {})}


def _fsdp(framework):
    version = {"fsdp1": 1, "fsdp2": 2}.get(framework["name"])
    if version is None:
        return {}
    options = {key: framework[key] for key in ("reshard_after_forward", "cpu_offload") if key in framework}
    return {"fsdp": True, "fsdp_config": {"version": version, **options}}


def training_arguments(case, folder, steps):
    """Keyword arguments of TrainingArguments: a case's `args` come last."""
    job = case["job"]
    work, framework = job["workload"], job.get("framework", {"name": "single"})
    arguments = {
        "output_dir": folder,
        "max_steps": steps,
        "learning_rate": 1e-5,
        "per_device_train_batch_size": work["micro_batch"],
        "gradient_accumulation_steps": work["gradient_accumulation"],
        "optim": _optimizer(job),
        "max_grad_norm": job.get("gradient_clipping", 1.0),
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        **_mixed_precision(job),
        **_kernels(job),
        **_compile(job),
        **_fsdp(framework),
    }
    checkpointing = checkpointing_arguments(job)
    if checkpointing is not None:
        arguments["gradient_checkpointing"] = True
        arguments["gradient_checkpointing_kwargs"] = checkpointing
    if "ds_config" in framework:
        arguments["deepspeed"] = framework["ds_config"]
    return {**arguments, **case.get("args", {})}
