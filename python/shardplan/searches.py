"""The best plans of a job, as `shardplan search` finds them."""

from __future__ import annotations

from .amounts import in_bytes
from .estimates import Cost, EstimateFields, Fix
from .record import Answer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class Plan(Record):
    """A plan that was found: its value on every axis, and what it comes to."""

    index: int
    values: dict[str, str]
    estimate: EstimateFields
    cost: Cost
    _parts = {"estimate": EstimateFields, "cost": Cost}


class NearMiss(Plan):
    """The plan that comes nearest where none fits."""

    fixes: list[Fix]
    enough_gpus: Optional[int]
    _parts = {**Plan._parts, "fixes": Fix}


class RuledOut(Record):
    """A rule, and how many of the plans it excludes."""

    rule: str
    count: int


class OtherChoice(Record):
    """The best plan with another value on one axis."""

    axis: str
    value: str
    fits: bool
    verdict: str
    slowdown: Optional[float]
    device_bytes_added: int
    device_upper_bytes: int


class Search(Answer):
    """The answer of `shardplan.search`: `front` has the plans that no other beats in everything."""

    objective: str
    candidates: int
    estimated: int
    simulated: int
    interrupted: bool
    cluster: str
    axes: dict[str, list[str]]
    ruled_out: list[RuledOut]
    front: list[Plan]
    best: Optional[Plan]
    other_choices: list[OtherChoice]
    near_miss: Optional[NearMiss]
    beyond_limits: Optional[Plan]
    _parts = {
        "ruled_out": RuledOut,
        "front": Plan,
        "best": Plan,
        "other_choices": OtherChoice,
        "near_miss": NearMiss,
        "beyond_limits": Plan,
    }

    def headline(self) -> str:
        if self.best is None:
            return f"NO PLAN FITS: {self.candidates:,} candidates on {self.cluster}"
        chosen = ", ".join(
            f"{axis} {self.best.values[axis]}"
            for axis, values in self.axes.items()
            if len(values) > 1
        )
        estimate = self.best.estimate
        return (
            f"{estimate.time.a_step()}, {in_bytes(estimate.peak_bytes)} of each "
            f"GPU: {chosen}; best of {self.candidates:,} by {self.objective}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """The front, a plan a row, the best first."""
        return [
            {
                **plan.values,
                "fits": plan.estimate.fits,
                "device_bytes": plan.estimate.peak_bytes,
                "step_seconds": plan.estimate.time.step_seconds,
                "step_error_largest": (plan.estimate.time.error or {}).get("largest"),
                "tokens_per_second": plan.estimate.time.tokens_per_second,
                "gpu_hours_per_billion_tokens": plan.cost.gpu_hours_per_billion_tokens,
            }
            for plan in self.front
        ]
