"""Linear layers that multiply in fp8, as torchao trains them: those of the blocks, the head as it is."""


def linear_format(job):
    """"fp8-tensorwise" of {"preset": "bf16-pure", "linear": "fp8-tensorwise"}; None: as computed."""
    precision = job["precision"]
    linear = precision.get("linear", "bf16") if isinstance(precision, dict) else "bf16"
    return None if linear == "bf16" else linear


def convert(model, job):
    """`model` with Float8Linear in place of its blocks' linears where the job wants it."""
    linear = linear_format(job)
    if linear is not None:
        from torchao.float8 import Float8LinearConfig, convert_to_float8_training

        convert_to_float8_training(model, config=Float8LinearConfig.from_recipe_name(linear.removeprefix("fp8-")),
                                   module_filter_fn=lambda module, name: "layers." in name)
    return model
