"""A prediction beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..amounts import in_bytes
from ..table import Table

if TYPE_CHECKING:
    from typing import Any, Optional

    from ..estimates import Estimate


class Comparison(Table):
    """Peaks and time of a run's steps, predicted and measured, a quantity a row.

    `error` is (predicted - measured) / measured; a quantity that was not measured is None.
    """

    def __init__(self, predicted: Estimate, measured: dict[str, Optional[float]]) -> None:
        self.predicted = predicted
        self.measured = measured

    def rows(self) -> list[dict[str, Any]]:
        peak, step = self.predicted.gpu.peak, self.predicted.time.step_seconds
        return [
            self._row("allocated_bytes", peak.allocated.least, peak.allocated.point, peak.allocated.upper),
            self._row("reserved_bytes", peak.reserved.least, peak.reserved.point, peak.reserved.upper),
            self._row("step_seconds", None, step, None),
        ]

    def _row(
        self, quantity: str, least: Optional[int], point: float, upper: Optional[int]
    ) -> dict[str, Any]:
        measured = self.measured[quantity]
        return {
            "quantity": quantity,
            "least": least,
            "predicted": point,
            "upper": upper,
            "measured": measured,
            "error": (point - measured) / measured if measured else None,
        }

    def headline(self) -> str:
        name = self.predicted.model.name
        if self.measured["reserved_bytes"] is None:
            return f"{name}: nothing was measured, there is no GPU"
        error = self.rows()[1]["error"]
        return f"{name}: reserved memory predicted {error:+.1%} off"

    def __str__(self) -> str:
        lines = [self.headline()]
        for row in self.rows():
            show = in_bytes if row["quantity"].endswith("bytes") else "{:.3g} s".format
            measured = "not measured" if row["measured"] is None else f"measured {show(row['measured'])}"
            error = "" if row["error"] is None else f" ({row['error']:+.1%})"
            name = row["quantity"].rsplit("_", 1)[0]
            lines.append(f"  {name:<10} predicted {show(row['predicted'])}, {measured}{error}")
        return "\n".join(lines)
