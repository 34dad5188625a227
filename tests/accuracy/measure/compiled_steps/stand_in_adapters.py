"""Linears in four or eight bits, as bitsandbytes stores them, and peft's adapters over them: of models without data."""
import torch


OUTLIERS_FROM = 6.0  # transformers' default


def _replace(model, make):
    """The linears of a model on the meta device that transformers quantizes: all but the head. What stays in 16 bits
    becomes fp32, as peft's prepare_model_for_kbit_training makes it."""
    head = model.get_output_embeddings()
    for module in list(model.modules()):
        for name, linear in list(module.named_children()):
            if type(linear) is torch.nn.Linear and linear is not head:
                setattr(module, name, make(linear))
    model.float()
    for parameter in model.parameters():
        parameter.requires_grad_(False)


def in_four_bits(model, values="nf4", double=True):
    from bitsandbytes.nn import Linear4bit

    def make(linear):
        made = Linear4bit(linear.in_features, linear.out_features, linear.bias is not None, device="meta",
                          compute_dtype=torch.bfloat16, compress_statistics=double, quant_type=values)
        made.weight = linear.weight  # packed when it is on the stand-in
        made.weight.compress_statistics, made.weight.quant_type = double, values  # peft asks
        return made

    _replace(model, make)
    model.is_loaded_in_4bit = True


def in_eight_bits(model):
    from bitsandbytes.nn import Linear8bitLt

    _replace(model, lambda linear: Linear8bitLt(linear.in_features, linear.out_features, linear.bias is not None,
                                                device="meta", has_fp16_weights=False, threshold=OUTLIERS_FROM))
    model.is_loaded_in_8bit = True


def every_linear(targets):
    """peft's word for every linear layer stands alone."""
    return targets[0] if targets == ["all-linear"] else targets


def with_adapters(model, lora, task="CAUSAL_LM"):
    from peft import LoraConfig, get_peft_model

    with torch.device("meta"):
        return get_peft_model(model, LoraConfig(r=lora["rank"], lora_alpha=32, lora_dropout=0.0, task_type=task,
                                                target_modules=every_linear(lora["targets"]), use_dora=lora.get("dora", False)))


def pack(model, memory, values="nf4", double=True):
    """Gives the linears on the stand-in their packed weights; `double`: the scales are quantized too. Not as Params4bit:
    a tensor without data cannot be one."""
    from bitsandbytes.functional import QuantState
    from bitsandbytes.nn import Linear4bit

    def empty(*shape, dtype=torch.float32):
        return torch.empty(*shape, dtype=dtype, device="cuda")

    with memory:
        for linear in model.modules():
            if not isinstance(linear, Linear4bit):
                continue
            count, shape = linear.in_features * linear.out_features, (linear.out_features, linear.in_features)
            scales = count // 64
            second, offset = None, None
            if double:
                second = QuantState(absmax=empty(-(-scales // 256)), blocksize=256, code=empty(256), dtype=torch.float32)
                offset = empty(())
            weight = torch.nn.Parameter(empty(count // 2, 1, dtype=torch.uint8), requires_grad=False)
            stored = torch.uint8 if double else torch.float32
            weight.quant_state = QuantState(absmax=empty(scales, dtype=stored), shape=torch.Size(shape),
                                            dtype=torch.bfloat16, blocksize=64, code=empty(16), quant_type=values,
                                            offset=offset, state2=second)
            linear.weight, linear.quant_state = weight, weight.quant_state
            linear.compute_type_is_set = True


def pack_eight(model, memory):
    """The same of linears in eight bits, as they are behind the first forward pass."""
    from bitsandbytes.nn import Linear8bitLt

    with memory:
        for linear in model.modules():
            if isinstance(linear, Linear8bitLt):
                shape = linear.out_features, linear.in_features
                linear.weight = torch.nn.Parameter(torch.empty(*shape, dtype=torch.int8, device="cuda"),
                                                   requires_grad=False)
                linear.weight.CB = linear.weight.SCB = None
                linear.state.CB, linear.state.SCB = linear.weight.data, torch.empty(shape[0], device="cuda")
                linear.state.threshold = OUTLIERS_FROM
