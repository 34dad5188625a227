"""A prediction beside what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..amounts import in_bytes
from ..table import Table

if TYPE_CHECKING:
    from typing import Any, Optional

    from ..estimates import Estimate, Range


class Comparison(Table):
    """Peaks and time of a run's steps, predicted and measured, a quantity a row.

    `error` is (predicted - measured) / measured; a quantity that was not measured is None.
    """

    def __init__(self, predicted: Estimate, measured: dict[str, Optional[float]]) -> None:
        self.predicted = predicted
        self.measured = measured

    def rows(self) -> list[dict[str, Any]]:
        peak = self.predicted.gpu.peak
        return [
            self._row("allocated_bytes", peak.allocated.point, peak.allocated),
            self._row("reserved_bytes", peak.reserved.point, peak.reserved),
            self._row("step_seconds", self.predicted.time.step_seconds, None),
        ]

    def _row(self, quantity: str, point: float, bounds: Optional[Range]) -> dict[str, Any]:
        measured = self.measured[quantity]
        return {
            "quantity": quantity,
            "least": bounds.least if bounds else None,
            "predicted": point,
            "upper": bounds.upper if bounds else None,
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
            line = f"  {row['quantity'].rsplit('_', 1)[0]:<10} predicted {show(row['predicted'])}"
            if row["measured"]:
                line += f", measured {show(row['measured'])} ({row['error']:+.1%})"
            lines.append(line)
        return "\n".join(lines)
