"""What one job needs: memory, traffic and time, as `shardplan estimate` and `fit` answer."""

from __future__ import annotations

from .amounts import in_bytes
from .record import Answer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Optional


class Range(Record):
    """A prediction in bytes with its bounds, which are quantiles of measured runs."""

    least: int
    point: int
    upper: int


class Peak(Record):
    """The largest use of a GPU in a step."""

    allocated: Range  #: what PyTorch's tensors take: torch.cuda.max_memory_allocated()
    reserved: Range  #: what its allocator holds: torch.cuda.max_memory_reserved()
    device: Range  #: with the CUDA context and the library of collectives
    _parts = {"allocated": Range, "reserved": Range, "device": Range}


class BreakdownLine(Record):
    """One category of what fills the fullest GPU."""

    category: str
    resident_bytes: int
    at_peak_bytes: int
    source: Literal["exact", "modelled", "calibrated", "assumed"]


class Gpu(Record):
    """The fullest GPU."""

    capacity_bytes: int
    usable_bytes: int
    peak: Peak
    peak_phase: str
    rank: int
    phases: dict[str, int]
    breakdown: list[BreakdownLine]
    _parts = {"peak": Peak, "breakdown": BreakdownLine}


class Room(Record):
    """Whether one kind of memory is enough."""

    verdict: Literal["fits", "tight", "does_not_fit"]
    needed_bytes: int
    available_bytes: Optional[int]


class Verdict(Record):
    """Whether the job fits, and what it is limited by where it does not."""

    fits: bool
    headroom_bytes: int
    limited_by: Optional[str]
    gpu: Room
    host: Room
    nvme: Room
    _parts = {"gpu": Room, "host": Room, "nvme": Room}


class Model(Record):
    """The network."""

    name: str
    parameters: int
    trainable_parameters: int
    tensors: int


class Traffic(Record):
    """What goes over a link in a step."""

    what: str
    link: Literal["gpu", "host", "nvme"]
    bytes_per_step: int
    bytes_between_nodes_per_step: int
    payload_bytes: int
    count: int


class Time(Record):
    """Where a step's time goes."""

    step_seconds: float
    tokens_per_second: float
    mfu: float
    hfu: float
    compute_seconds: float
    communication_seconds: float
    exposed_communication_seconds: float
    exposed_copy_seconds: float
    optimizer_seconds: float
    bubble_seconds: float
    idle_seconds: float
    speed_of_light_seconds: float
    source: str
    #: How far off the steps of such jobs were: kind, runs, mean, largest. None where none was measured.
    error: Optional[dict[str, Any]]
    #: Of generation only.
    prefill_seconds: Optional[float]
    prefill_tokens_per_second: Optional[float]
    decode_seconds: Optional[float]
    decode_tokens_per_second: Optional[float]
    #: Of an iteration whose rollout engine has GPUs of its own: what each group works and waits.
    gpu_groups: Optional[dict[str, Any]]

    def a_step(self) -> str:
        """Its seconds, and how far off such steps were at most."""
        told = "error not known"
        if self.error is not None:
            told = f"such were off by {100 * abs(self.error['largest']):.0f} % at most"
        return f"{self.step_seconds:.3g} s a step ({told})"


class Cost(Record):
    """What the job costs, where a price or a number of tokens is known, and what it consumes."""

    price_per_hour: Optional[float]
    spot_price_per_hour: Optional[float]
    #: Where the price is from: provider, machine, region, date.
    list_price: Optional[dict[str, Any]]
    watts: Optional[float]
    seconds_per_billion_tokens: Optional[float]
    gpu_hours_per_billion_tokens: Optional[float]
    money_per_step: Optional[float]
    money_per_billion_tokens: Optional[float]
    spot_money_per_billion_tokens: Optional[float]
    joules_per_step: Optional[float]
    kwh_per_billion_tokens: Optional[float]
    tokens: Optional[float]
    days: Optional[float]
    gpu_hours: Optional[float]
    money: Optional[float]
    spot_money: Optional[float]
    kwh: Optional[float]
    #: What checkpoints and failures take of the whole run.
    checkpoint: Optional[dict[str, Any]]


class EstimateFields(Record):
    """What every estimate has, one that was asked for and one that a search found."""

    verdict: Verdict
    model: Model
    gpu: Gpu
    host: dict[str, int]
    nvme: dict[str, int]
    traffic: list[Traffic]
    time: Time
    warnings: list[str]
    assumed: list[str]
    cost: Cost
    _parts = {
        "verdict": Verdict,
        "model": Model,
        "gpu": Gpu,
        "traffic": Traffic,
        "time": Time,
        "cost": Cost,
    }

    @property
    def fits(self) -> bool:
        """Whether the point estimate fits, on the GPU, the host and NVMe."""
        return self.verdict.fits

    @property
    def peak_bytes(self) -> int:
        """The point estimate of what the fullest GPU needs."""
        return self.gpu.peak.device.point


class Estimate(EstimateFields, Answer):
    """The answer of `shardplan.estimate`."""

    def headline(self) -> str:
        room = self.verdict.gpu
        word = room.verdict.upper().replace("_", " ") if self.fits else "DOES NOT FIT"
        of = "" if room.available_bytes is None else f" of {in_bytes(room.available_bytes)}"
        return (
            f"{word}: {self.model.name}, {in_bytes(room.needed_bytes)}{of} of each GPU, "
            f"{self.time.a_step()}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """What fills the fullest GPU, a category a row."""
        return [line.data for line in self.gpu.breakdown]


class Change(Record):
    """One step of a fix."""

    what: str
    how: str


class Fix(Record):
    """A change of the job that saves memory, and its price in time."""

    changes: list[Change]
    saves_bytes: int
    slowdown: float
    fits: bool
    device_bytes: int
    host_bytes_per_node: int
    _parts = {"changes": Change}


class Fit(Estimate):
    """The answer of `shardplan.fit`: an estimate, and what would make more room."""

    fixes: list[Fix]
    _parts = {**Estimate._parts, "fixes": Fix}
