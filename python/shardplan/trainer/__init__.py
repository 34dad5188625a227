"""Predictions beside a Trainer of transformers, and of what is built on it, such as TRL's."""

from .callback import PredictionCallback
from .comparison import Comparison
from .run import check

__all__ = ["Comparison", "PredictionCallback", "check"]
