"""Linear layers that multiply in fp8, as torchao trains them: those of the blocks, the head as it is."""
import dataclasses


def linear_format(job):
    """"fp8-tensorwise" of {"preset": "bf16-pure", "linear": "fp8-tensorwise"}; None: as computed."""
    precision = job["precision"]
    linear = precision.get("linear", "bf16") if isinstance(precision, dict) else "bf16"
    return None if linear == "bf16" else linear


def gathers(job):
    """How FSDP2 gathers what multiplies in fp8: "none", "dynamic" or "precomputed", as jobs say it."""
    return job.get("framework", {}).get("float8_all_gather", "none")


def find_scales(model, job):
    """Behind the optimizer's step, where weights are gathered with scales that were found before."""
    if gathers(job) == "precomputed":
        from torchao.float8 import precompute_float8_dynamic_scale_for_fsdp

        precompute_float8_dynamic_scale_for_fsdp(model)


def convert(model, job):
    """`model` with Float8Linear in place of its blocks' linears where the job wants it."""
    linear = linear_format(job)
    if linear is not None:
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training

        config = Float8LinearConfig.from_recipe_name(linear.removeprefix("fp8-"))
        if gathers(job) != "none":
            config = dataclasses.replace(config, enable_fsdp_float8_all_gather=True)
        convert_to_float8_training(model, config=config,
                                   module_filter_fn=lambda module, name: "layers." in name)
    return model
