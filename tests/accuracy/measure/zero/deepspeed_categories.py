"""Sizes of what a DeepSpeed optimizer keeps, by category, read from the tensors it holds."""
import torch


def _storages(tensors, device_type, seen):
    """Bytes of the storages behind the tensors on one kind of device that no earlier category has counted."""
    total = 0
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if tensor.device.type == device_type and storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            total += storage.nbytes()
    return total


def _flatten(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _flatten(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _flatten(item)]
    return []


def _named(optimizer, *names):
    return [tensor for name in names for tensor in _flatten(getattr(optimizer, name, None))]


def categories(engine):
    """{"gpu": {category: bytes}, "host": {category: bytes}} between two steps; views count where first named."""
    optimizer = engine.optimizer
    base = getattr(optimizer, "optimizer", optimizer)
    model = list(engine.module.parameters())
    masters = _named(optimizer, "single_partition_of_fp32_groups", "fp32_partitioned_groups_flat",
                     "fp32_groups_flat_partition", "fp32_groups_flat", "fp32_groups")
    groups = {
        "bit16_flat": _named(optimizer, "bit16_groups_flat", "fp16_groups_flat", "lp_param_buffer"),
        "bit16_shards": [p.ds_tensor for p in model if hasattr(p, "ds_tensor")],
        "model_parameters": [p.data for p in model],
        "model_gradients": _flatten([p.grad for p in model]),
        "master": masters,
        "master_gradients": _flatten([p.grad for p in masters]),
        "optimizer_states": _flatten(dict(getattr(base, "state", {}))),
        "gradient_partition": _named(optimizer, "grad_partitions_flat_buffer", "fp32_groups_gradients_flat",
                                     "averaged_gradients", "all_grad_tensors"),
        "offload_staging": _named(optimizer, "temp_grad_buffer_for_gpu_offload", "temp_grad_buffer_for_cpu_offload",
                                  "param_buffer_of_bit16_for_cpu_offload_groups", "accumulated_grads_in_cpu"),
        "buckets": [tensor for bucket in getattr(optimizer, "ipg_buckets", {}).values()
                    for tensor in _flatten(getattr(bucket, "buffer", None))],
    }
    return {"gpu": _sizes(groups, "cuda"), "host": _sizes(groups, "cpu")}


def _sizes(groups, device_type):
    seen = set()
    sizes = {name: _storages(tensors, device_type, seen) for name, tensors in groups.items()}
    return {name: size for name, size in sizes.items() if size}


def watch_buckets(optimizer, sizes):
    """Makes setup_buckets add the bytes it allocates to `sizes`, where a stage allocates its buckets lazily. It is called for
    every gradient, and allocates for the first of a backward pass: only there is memory looked at, which takes long."""
    original = getattr(optimizer, "setup_buckets", None)
    if original is None:
        return

    def setup_buckets(*arguments, **options):
        if getattr(optimizer, "ready_for_gradients", False):
            return original(*arguments, **options)
        before = torch.cuda.memory_allocated()
        original(*arguments, **options)
        allocated = torch.cuda.memory_allocated() - before
        if allocated:
            sizes.append(allocated)

    optimizer.setup_buckets = setup_buckets
