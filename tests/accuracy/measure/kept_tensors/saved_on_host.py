"""What activation offloading leaves on the GPU, as TRL does it: writes tests/golden/saved_on_host.json.

A small model of transformers runs a step under TRL's own OffloadActivations, on tensors without data of a GPU that is
not there: streams and events do nothing, and every storage of the GPU is counted from its making to its end.
tests/core/lowering/saved_on_host_test.cpp compares forward_end and what is sent with the step program.

    python3 tests/accuracy/measure/kept_tensors/saved_on_host.py
"""
import json
import os
import pathlib
import sys
import types
import weakref

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from stand_in_gpu import stand_in as stand_in_gpu

stand_in_gpu()
import torch
import transformers
from torch._subclasses import fake_tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden" / "saved_on_host.json"
UNIT = 512  # bytes: PyTorch's allocator rounds to it on a GPU
BATCH, SEQUENCE = 2, 64
SIZES = {"hidden_size": 128, "intermediate_size": 224, "num_hidden_layers": 5, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 500, "max_position_embeddings": 64}
MODELS = {"llama": {"model_type": "llama", **SIZES}, "qwen2": {"model_type": "qwen2", **SIZES}}
WAYS = {"none": None, "streams": True, "one_stream": False}


class Live(TorchDispatchMode):
    """Bytes of the GPU's storages that operations have made and that something holds."""

    def __init__(self):
        super().__init__()
        self.known, self.now, self.peak, self.sent = {}, 0, 0, 0

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is torch.ops.aten.copy_.default and args[0].device.type == "cpu":
            self.sent += -(-args[1].untyped_storage().nbytes() // UNIT) * UNIT
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda":
                self.add(tensor.untyped_storage())
        return result

    def add(self, storage):
        key, size = storage._cdata, -(-storage.nbytes() // UNIT) * UNIT
        if key in self.known:
            return

        def gone(_):
            del self.known[key]
            self.now -= size

        self.known[key] = weakref.ref(storage, gone)
        self.now += size
        self.peak = max(self.peak, self.now)


class Nothing:
    """A stream, an event, and what sets one."""

    def __getattr__(self, name):
        return lambda *given, **named: Nothing()

    def __enter__(self):
        return self

    def __exit__(self, *given):
        return False


def stand_in():
    """A GPU that holds tensors without data."""
    fake_tensor.init_gpu_context = lambda *given: None
    module = types.SimpleNamespace(Stream=Nothing, stream=lambda s: Nothing(), current_stream=Nothing, empty_cache=lambda: None)
    torch.get_device_module = lambda *given: module
    torch.accelerator.current_accelerator = lambda *given: torch.device("cuda")
    import trl.models.activation_offloading as offloading
    # Tensors without data have no address: storages are told apart by themselves.
    offloading._get_unique_tensor_key = lambda t: (t.untyped_storage()._cdata, t.storage_offset(), t.dtype)
    return offloading


def fused_attention(module, query, key, value, mask, dropout=0.0, scaling=None, **rest):
    """sdpa as a GPU runs it, with grouped keys and values."""
    result = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, True, scale=scaling)[0]
    return result.transpose(1, 2).contiguous(), None


def measure(offloading, name, way):
    options = {k: v for k, v in MODELS[name].items() if k != "model_type"}
    config = transformers.AutoConfig.for_model(MODELS[name]["model_type"], **options, use_cache=False)
    transformers.AttentionInterface.register("gpu", fused_attention)
    with fake_tensor.FakeTensorMode() as mode, torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.bfloat16).train()
        model.config._attn_implementation = "gpu"
        tokens = torch.randint(0, config.vocab_size, (BATCH, SEQUENCE))
        positions = torch.arange(SEQUENCE).unsqueeze(0)
        context = Nothing()
        if way is not None:
            context = offloading.get_act_offloading_ctx_manager(model, use_pin_memory=False, use_streams=way)
            addresses = {p.untyped_storage()._cdata for p in model.parameters()}
            pack = context.pack_hook

            def known_parameters(tensor):
                """Parameters are told by the addresses of their storages, which have none here."""
                if tensor.untyped_storage()._cdata in addresses:
                    return pack(torch.nn.Parameter(tensor.detach(), requires_grad=False))
                return pack(tensor)

            context.pack_hook = known_parameters
        live = Live()
        for tensor in [*model.parameters(), *model.buffers(), tokens, positions]:
            live.add(tensor.untyped_storage())
        live.now = live.peak = 0
        for ref in list(live.known):
            live.known[ref] = None
        with context, live:
            loss = model(input_ids=tokens, position_ids=positions, labels=tokens).loss
            forward_end, forward_peak = live.now, live.peak
            live.peak = 0
            loss.backward()
    return {"case": name, "config": MODELS[name], "activation_offloading": next(k for k, v in WAYS.items() if v is way),
            "batch": BATCH, "sequence": SEQUENCE, "forward_peak": forward_peak, "forward_end": forward_end,
            "backward_peak": live.peak, "sent": live.sent}


def main():
    offloading = stand_in()
    cases = [measure(offloading, name, way) for name in MODELS for way in WAYS.values()]
    for case in cases:
        print({k: v for k, v in case.items() if k != "config"})
    about = {"about": "bytes of a GPU beside the model and its inputs, and bytes sent to the host in a step, each storage "
                      "rounded to 512 bytes",
             "made_by": "tests/accuracy/measure/kept_tensors/saved_on_host.py", "transformers": transformers.__version__,
             "torch": torch.__version__.split("+")[0], "trl": __import__("trl").__version__}
    head = json.dumps(about, indent=1).rstrip("}").rstrip()
    rows = ",\n".join("  " + json.dumps(case) for case in cases)
    GOLDEN.write_text(f'{head},\n "cases": [\n{rows}\n ]\n}}\n')


if __name__ == "__main__":
    main()
