"""A callback of transformers' Trainer: predicts before the first step, compares at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformers import TrainerCallback

from ..errors import DoesNotFit, InputError
from .comparison import Comparison
from .meter import Meter
from .run import predict

if TYPE_CHECKING:
    from typing import Any, Optional

    from typing_extensions import Unpack

    from ..documents import Document
    from ..estimates import Estimate
    from ..flags import EstimateFlags


class PredictionCallback(TrainerCallback):
    """Says what the run will need before its first step, and how far off that was at its end.

    `files` and `flags` are those of `shardplan.check`. With `must_fit` a run that is predicted not
    to fit ends before its first step with DoesNotFit. A run that cannot be estimated is told so
    and trains all the same. `prediction` and `comparison` keep the two answers.
    """

    def __init__(
        self, *files: Document, must_fit: bool = False, **flags: Unpack[EstimateFlags]
    ) -> None:
        self.prediction: Optional[Estimate] = None
        self.comparison: Optional[Comparison] = None
        self._files = files
        self._flags = dict(flags)
        self._must_fit = must_fit
        self._meter = Meter()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Predicts."""
        dataset = getattr(kwargs.get("train_dataloader"), "dataset", None)
        try:
            self.prediction = predict(args, kwargs["model"], dataset, self._files, self._flags)
        except InputError as error:
            _say(state, f"shardplan cannot predict this run: {error}")
            return
        _say(state, f"shardplan predicts: {self.prediction.headline()}")
        if self._must_fit and not self.prediction.fits:
            raise DoesNotFit(self.prediction.headline())

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Starts to measure."""
        self._meter.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measures."""
        self._meter.end()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Compares."""
        measured = self._meter.measured()
        if self.prediction is None:
            return
        self.comparison = Comparison(self.prediction, measured)
        _say(state, f"shardplan compares: {self.comparison}")


def _say(state: Any, text: str) -> None:
    if state.is_world_process_zero:
        print(text)
