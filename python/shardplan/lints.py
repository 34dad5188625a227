"""Mistakes in a DeepSpeed configuration, as `shardplan lint` finds them."""

from __future__ import annotations

from .record import Answer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Optional


class Finding(Record):
    """One mistake: the rule that found it, where, and the edits that repair it."""

    rule: str
    severity: Literal["error", "warning", "note"]
    file: str
    line: int
    column: int
    key: str
    message: str
    expected: Optional[str]
    nearest: Optional[str]
    edits: list[dict[str, Any]]


class ResolvedAuto(Record):
    """An "auto" value and what becomes of it."""

    key: str
    value: Any
    rule: str


class Lint(Answer):
    """The answer of `shardplan.lint`."""

    deepspeed_version: str
    auto_resolver: str
    errors: int
    warnings: int
    notes: int
    findings: list[Finding]
    autos: list[ResolvedAuto]
    _parts = {"findings": Finding, "autos": ResolvedAuto}

    def headline(self) -> str:
        return f"{self.errors} errors, {self.warnings} warnings, {self.notes} notes"

    def rows(self) -> list[dict[str, Any]]:
        """The findings, one a row."""
        columns = ("severity", "rule", "file", "line", "key", "message", "expected", "nearest")
        return [{column: one.data.get(column) for column in columns} for one in self.findings]
