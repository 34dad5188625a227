"""How a job's blocks are checkpointed, as transformers' models do it."""
import functools

# What torchtitan keeps of a block (torchtitan/distributed/activation_checkpoint.py, _get_default_save_ops).
SAVED = ("mm", "addmm", "bmm", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
         "_scaled_dot_product_cudnn_attention")


def policy(job):
    """`job["checkpointing"]`, a word or an object, as an object."""
    said = job.get("checkpointing", "none")
    return {"policy": said} if isinstance(said, str) else said


def checkpoints(job):
    return policy(job)["policy"] != "none"


def _contexts(every):
    """Of the products without a bias each n-th is computed again; `every`: n, or None."""
    import torch
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    saved = {getattr(torch.ops.aten, name).default for name in SAVED}
    counts = {True: 0, False: 0}

    def decide(context, op, *args, **kwargs):
        keeps = op in saved
        if every and op == torch.ops.aten.mm.default:
            counts[context.is_recompute] += 1
            keeps = counts[context.is_recompute] % every != 0
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(decide)


def arguments(job):
    """What TrainingArguments say of it; None where they cannot, and the model has to be told (enable)."""
    said = policy(job)
    whole = said["policy"] == "full" or "every" in said and said["policy"] == "blocks"
    if not whole:
        return None
    return {"use_reentrant": False, **({"every_n_layers": said["every"]} if "every" in said else {}),
            **({"offload": True} if said.get("offload") else {})}


def enable(job, model):
    """Of each n blocks the last one is checkpointed, as by torchtitan's layer option."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    said = policy(job)
    options = {"use_reentrant": False}
    if said["policy"].startswith("selective"):
        options["context_fn"] = functools.partial(_contexts, said.get("every"))
    model.gradient_checkpointing_enable(options, offload=said.get("offload", False))
    if said["policy"] != "blocks":
        return
    blocks = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    for place, block in enumerate(blocks):
        block.gradient_checkpointing = ((place + 1) % said["every"] == 0 if "every" in said
                                        else place < said["count"])
