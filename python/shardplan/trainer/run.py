"""A run of transformers' Trainer, as the question what it needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import InputError
from ..questions import estimate

if TYPE_CHECKING:
    from typing import Any, Optional

    from typing_extensions import Unpack

    from ..documents import Document
    from ..estimates import Estimate
    from ..flags import EstimateFlags

#: Rows of a dataset whose lengths are looked at.
_ROWS = 1000
#: bitsandbytes' keys that arguments may have too.
_QUANTIZED = ("load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type", "bnb_4bit_use_double_quant")
#: The keys of arguments that say how long samples are.
_LENGTHS = ("max_length", "max_seq_length", "model_max_length", "max_completion_length")


def check(trainer: Any, /, *files: Document, **flags: Unpack[EstimateFlags]) -> Estimate:
    """Estimates what `trainer.train()` needs: a Trainer of transformers, or one built on it.

    Reads its arguments, its model's configuration and adapters, and the GPUs of this machine.
    `files` are what it was launched with and its arguments do not have, such as accelerate's
    configuration; `flags` override what is found. Raises InputError.
    """
    return predict(trainer.args, trainer.model, trainer.train_dataset, files, dict(flags))


def predict(
    args: Any,
    model: Any,
    dataset: Any,
    files: tuple[Document, ...],
    flags: dict[str, Any],
) -> Estimate:
    """Estimates the run of `model` with the TrainingArguments `args`.

    `files` are what the run was launched with and the arguments do not have, such as accelerate's
    configuration; `flags` say the rest, and override what is found here.
    """
    arguments = {**args.to_dict(), **_loading(model)}
    flags = dict(flags)
    if flags.get("cluster") is None:
        flags["cluster"] = _cluster(args)
    found = ""
    if flags.get("sequence_length") is None and not any(arguments.get(key) for key in _LENGTHS):
        if longest := _longest_sample(dataset):
            flags["sequence_length"] = longest
            found = f"sequence_length: {longest}, the longest of the first {_ROWS:,} samples\n"
    documents: list[Any] = [arguments, *_networks(model, flags), *files]
    answer = estimate(*documents, **flags)
    answer.remarks += found
    return answer


def _unwrapped(model: Any) -> Any:
    while not hasattr(model, "config") and hasattr(model, "module"):
        model = model.module
    return model


def _loading(model: Any) -> dict[str, Any]:
    """How the weights were loaded, in the words that TRL's arguments have for it."""
    model = _unwrapped(model)
    config = getattr(model, "config", None)
    loading: dict[str, Any] = {}
    dtype = getattr(model, "dtype", None)
    if dtype is not None:
        loading["dtype"] = str(dtype).replace("torch.", "")
    attention = getattr(config, "_attn_implementation", None)
    if attention:
        loading["attn_implementation"] = attention
    quantization = getattr(config, "quantization_config", None)
    if quantization is not None:
        known = quantization if isinstance(quantization, dict) else quantization.to_dict()
        loading.update({key: known[key] for key in _QUANTIZED if known.get(key)})
    return loading


def _networks(model: Any, flags: dict[str, Any]) -> list[dict[str, Any]]:
    """The model's configuration, unless a flag names the model, and its adapters'."""
    model = _unwrapped(model)
    documents = []
    config = getattr(model, "config", None)
    if config is not None and flags.get("model") is None:
        network = dict(config.to_dict())
        network.pop("quantization_config", None)
        documents.append(network)
    adapters = getattr(model, "peft_config", None)
    if adapters:
        active = getattr(model, "active_adapter", None)
        documents.append(adapters.get(active, next(iter(adapters.values()))).to_dict())
    return documents


def _cluster(args: Any) -> str:
    """The GPUs of this run: all of the kind that is here."""
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        raise InputError("there is no GPU here; expected cluster='8xH100-80GB' or the like")
    if args.n_gpu > 1:
        raise InputError(
            f"one process uses {args.n_gpu} GPUs (torch.nn.DataParallel), which is not estimated; "
            "expected a launcher that starts a process for each GPU, such as torchrun"
        )
    ranks = args.world_size
    of_node = int(os.environ.get("LOCAL_WORLD_SIZE", min(ranks, torch.cuda.device_count())))
    return f"{max(1, ranks // of_node)}x{of_node}x{torch.cuda.get_device_name()}"


def _longest_sample(dataset: Any) -> Optional[int]:
    """In tokens; None for a dataset that has no lengths to look at."""
    try:
        rows = (dataset[row] for row in range(min(_ROWS, len(dataset))))
        return max((len(row["input_ids"]) for row in rows), default=None)
    except (TypeError, KeyError, IndexError):
        return None
