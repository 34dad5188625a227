"""Predicts memory, traffic and time of a training step before you rent the GPUs.

    import shardplan
    shardplan.fit("llama-2-7b", "4xA100-40GB")
"""

from __future__ import annotations

from ._core import __version__
from .errors import DoesNotFit, InputError
from .questions import estimate, fit, import_, lint, search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .trainer import Comparison, PredictionCallback, check

__all__ = [
    "Comparison",
    "DoesNotFit",
    "InputError",
    "PredictionCallback",
    "__version__",
    "check",
    "estimate",
    "fit",
    "import_",
    "lint",
    "search",
]


def __getattr__(name: str) -> object:
    # What rests on transformers is imported when it is asked for: it takes seconds.
    if name in ("Comparison", "PredictionCallback", "check"):
        from . import trainer

        return getattr(trainer, name)
    raise AttributeError(f"module 'shardplan' has no attribute '{name}'")
