"""saved_tensors.py for networks that read the samples of sounds: writes tests/golden/saved_tensors_sounds.json.

    python3 tests/accuracy/measure/kept_tensors/saved_tensors_sounds.py
"""

import os
import sys

import torch
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import folders  # noqa: F401

from autograd_storages import arguments, print_cases, saved_storages, write_golden
from saved_tensors_families import WithLoss
from sounds import freeze, labels_of, samples_of, sound_class

RUNS = [(2, 64, torch.float32), (2, 64, torch.bfloat16), (1, 96, torch.bfloat16)]
LABELS = 12  # of each sequence, for the loss that aligns them

SOUND = {
    "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 40,
    "conv_dim": [48, 48, 32], "conv_kernel": [10, 3, 2], "conv_stride": [5, 2, 2], "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4, "mask_time_length": 4, "layerdrop": 0.0, "hidden_dropout": 0.0,
    "activation_dropout": 0.0, "attention_dropout": 0.0, "final_dropout": 0.0,
}
STABLE = {**SOUND, "do_stable_layer_norm": True, "feat_extract_norm": "layer", "conv_bias": True}
DROPPED = {"hidden_dropout": 0.1, "activation_dropout": 0.1, "final_dropout": 0.1, "feat_proj_dropout": 0.1}


def named(suffix: str, **keys) -> dict:
    return {"model_type": "wav2vec2", "architectures": ["Wav2Vec2" + suffix], **keys}


# Name: config.json of the case. Attention dropout is 0: the CPU's fused kernel has none, and would be replaced.
CASES = {
    "wav2vec2": named("ForCTC", **SOUND),
    "wav2vec2-dropout": named("ForCTC", **SOUND) | DROPPED,
    "wav2vec2-stable": named("ForCTC", **STABLE, ctc_loss_reduction="mean", ctc_zero_infinity=True),
    "wav2vec2-stable-dropout": named("ForCTC", **STABLE) | DROPPED,
    "wav2vec2-features": named("ForCTC", **SOUND, mask_feature_prob=0.2, mask_feature_length=8,
                               mask_feature_min_masks=1),
    "wav2vec2-plain": named("ForCTC", **SOUND, apply_spec_augment=False) | {"num_conv_pos_embeddings": 15},
    "wav2vec2-mixed": named("Model", **STABLE) | {"do_stable_layer_norm": False},
    "wav2vec2-base": named("Model", **SOUND),
    "wav2vec2-sequence": named("ForSequenceClassification", **SOUND, num_labels=5, classifier_proj_size=24),
    "wav2vec2-frames": named("ForAudioFrameClassification", **STABLE, num_labels=5),
}


class Casting(torch.nn.Module):
    """A network that is given samples in fp32: they are cast before it."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self.dtype = model, dtype

    def forward(self, input_values, **inputs):
        return self.model(input_values=input_values.to(self.dtype), **inputs)


def build(config: dict, attention: str, dtype: torch.dtype, frozen: str) -> torch.nn.Module:
    options = {k: v for k, v in config.items() if k != "model_type"}
    parsed = transformers.AutoConfig.for_model(config["model_type"], **options)
    torch.manual_seed(0)
    model = sound_class(parsed)._from_config(parsed, attn_implementation=attention, dtype=dtype).train()
    freeze(model, frozen)
    return model


def measure(name: str, attention: str, frozen: str, batch: int, frames: int, dtype: torch.dtype) -> dict:
    model = build(CASES[name], attention, dtype, frozen)
    config = model.config
    whole = WithLoss(model) if CASES[name]["architectures"][0].endswith("Model") else model
    inputs = {"input_values": torch.randn(batch, samples_of(config, frames)),
              **labels_of(config, batch, frames, LABELS)}
    return {
        "case": name,
        "config": CASES[name],
        "attention": attention,
        "frozen": frozen,
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "sequence": frames,
        "target": LABELS,
        **saved_storages(Casting(whole, dtype), inputs),
    }


def main() -> None:
    args = arguments(__doc__, "saved_tensors_sounds.json")
    torch.set_num_threads(1)
    cases, orders = [], {}
    for name in CASES:
        if args.only and name != args.only:
            continue
        for attention in ("sdpa", "eager"):
            for frozen in ("nothing", "tower"):
                for batch, frames, dtype in RUNS:
                    cases.append(measure(name, attention, frozen, batch, frames, dtype))
        model = build(CASES[name], "eager", torch.float32, "nothing")
        orders[name] = [parameter for parameter, _ in model.named_parameters()]
    if args.only:
        print_cases(cases)
    else:
        write_golden(args.out, "saved_tensors_sounds.py", cases, orders)


if __name__ == "__main__":
    main()
