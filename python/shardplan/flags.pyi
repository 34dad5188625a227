"""The keywords of the questions, which are the flags of the commands."""

# tools/make_python_flags.sh writes this file.
from collections.abc import Sequence
from typing import TypedDict

from .documents import Document

class JobFlags(TypedDict, total=False):
    framework: Document | None
    gradient_as_bucket_view: bool | None
    zero_redundancy_optimizer: bool | None
    find_unused_parameters: bool | None
    units: Document | None
    frozen_tower: Document | None
    reshard_after_forward: bool | None
    cpu_offload: bool | None
    float8_all_gather: Document | None
    hybrid_shard_size: float | str | None
    reduce_dtype: Document | None
    context_rotation: Document | None
    expert_dispatch: Document | None
    sync_each_batch: bool | None
    state_dict_type: Document | None
    zero_stage: float | str | None
    ds_config: Document | None
    deepspeed_version: Document | None
    auto: Document | None
    offload_optimizer: Document | None
    offload_param: Document | None
    checkpoint_function: Document | None
    model_dtype: Document | None
    use_gds: bool | None
    delayed_update: bool | None
    distributed_optimizer: bool | None
    distributed_optimizer_instances: float | str | None
    shard_gradients: bool | None
    shard_parameters: bool | None
    overlap_grad_reduce: bool | None
    overlap_param_gather: bool | None
    grad_reduce_dtype: Document | None
    bucket_size: float | str | None
    pad_buckets: bool | None
    cross_entropy_fusion: bool | None
    gradient_accumulation_fusion: bool | None
    async_tensor_model_parallel_allreduce: bool | None
    transformer_impl: Document | None
    tp_comm_overlap: bool | None
    mtp_num_layers: float | str | None
    distribute_saved_activations: bool | None
    min_offloaded_tensor_size: float | str | None
    sharding_strategy: Document | None
    limit_all_gathers: bool | None
    use_orig_params: bool | None
    backward_prefetch: Document | None
    forward_prefetch: bool | None
    keep_low_precision_grads: bool | None
    micro_batch: float | str | None
    sequence_length: float | str | None
    lengths: Document | None
    packing: bool | None
    target_length: float | str | None
    images: float | str | None
    image_tokens: float | str | None
    frozen: Document | None
    gradient_accumulation: float | str | None
    method: Document | None
    lora_rank: float | str | None
    lora_targets: Sequence[object] | str | None
    lora_quantization: Document | None
    quantize_experts: bool | None
    prepare_kbit: bool | None
    lora_rank_stabilized: bool | None
    lora_dropout: float | str | None
    dora: bool | None
    modules_to_save: Sequence[object] | str | None
    target_parameters: Sequence[object] | str | None
    train_whole: Sequence[object] | str | None
    oft_block_size: float | str | None
    saved_in_fp32: bool | None
    kind: Document | None
    tokens: float | str | None
    batch: float | str | None
    prompt_length: float | str | None
    new_tokens: float | str | None
    quantization: Document | None
    kv_cache_dtype: Document | None
    shared_prefix: float | str | None
    engine: Document | None
    gpu_memory_utilization: float | str | None
    engine_tensor_parallel: float | str | None
    engine_expert_parallel: float | str | None
    block_size: float | str | None
    max_num_batched_tokens: float | str | None
    max_num_seqs: float | str | None
    max_model_len: float | str | None
    num_prompts: float | str | None
    longest_answer: float | str | None
    async_scheduling: bool | None
    num_scheduler_steps: float | str | None
    data_parallel: float | str | None
    tensor_parallel: float | str | None
    pipeline_parallel: float | str | None
    virtual_pipeline: float | str | None
    ulysses: float | str | None
    context_parallel: float | str | None
    expert_parallel: float | str | None
    expert_tensor_parallel: float | str | None
    sequence_parallel: bool | None
    pipeline_schedule: Document | None
    stage_balance: Document | None
    stage_layers: Sequence[object] | str | None
    precision: Document | None
    linear: Document | None
    optimizer: Document | None
    optimizer_implementation: Document | None
    momentum: float | str | None
    compile_mode: Document | None
    compile_scope: Document | None
    trainer: Document | None
    kernels: Sequence[object] | str | None
    attention: Document | None
    sdpa_kernel: Document | None
    state_kernels: Document | None
    checkpointing: Document | None
    activation_offloading: Document | None
    mlp_tiles: float | str | None
    compile: bool | None
    loss: Document | None
    gradient_clipping: float | str | None
    launch_blocking: bool | None
    mlp: Sequence[object] | str | None
    host_memory_bytes: float | str | None
    nvme_bytes: float | str | None
    price: float | str | None
    spot_price: float | str | None
    storage_read_bandwidth: float | str | None
    storage_write_bandwidth: float | str | None
    hours_between_failures: float | str | None
    restart_seconds: float | str | None

class WholeJobFlags(JobFlags, total=False):
    model: Document | None
    cluster: Document | None

class FitFlags(JobFlags, total=False):
    calibration: Document | None
    machine: Document | None
    any_gpu: bool
    price_per_gpu_hour: float | str | None

class EstimateFlags(WholeJobFlags, total=False):
    calibration: Document | None
    machine: Document | None
    any_gpu: bool
    price_per_gpu_hour: float | str | None

class SearchFlags(WholeJobFlags, total=False):
    objective: Document | None
    threads: float | str | None
    rows: float | str | None
    export: Document | None
    force: bool
    gpu_counts: Sequence[object] | str | None
    frameworks: Sequence[object] | str | None
    zero_stages: Sequence[object] | str | None
    tensor_degrees: Sequence[object] | str | None
    sequence_parallels: Sequence[object] | str | None
    ulysses_degrees: Sequence[object] | str | None
    context_degrees: Sequence[object] | str | None
    pipeline_degrees: Sequence[object] | str | None
    virtual_pipelines: Sequence[object] | str | None
    pipeline_schedules: Sequence[object] | str | None
    stage_balances: Sequence[object] | str | None
    expert_degrees: Sequence[object] | str | None
    expert_tensors: Sequence[object] | str | None
    data_degrees: Sequence[object] | str | None
    precisions: Sequence[object] | str | None
    optimizer_offloads: Sequence[object] | str | None
    parameter_offloads: Sequence[object] | str | None
    checkpointings: Sequence[object] | str | None
    mlp_tile_counts: Sequence[object] | str | None
    micro_batches: Sequence[object] | str | None
    accumulations: Sequence[object] | str | None
    reduce_buckets: Sequence[object] | str | None
    prefetch_buckets: Sequence[object] | str | None
    persistence_thresholds: Sequence[object] | str | None
    global_batch: float | str | None
    gpu_memory_bytes: float | str | None
    max_step_seconds: float | str | None
    max_cost_per_billion_tokens: float | str | None
    max_days: float | str | None
    price_per_gpu_hour: float | str | None
    calibration: Document | None
    machine: Document | None
    any_gpu: bool

class LintFlags(JobFlags, total=False):
    accelerate: Document | None
    training_arguments: Document | None
    gpus: Document | None
    fix: Document | None
    overwrite: bool
    strict: bool

class ImportFlags(WholeJobFlags, total=False):
    kind: Document | None
