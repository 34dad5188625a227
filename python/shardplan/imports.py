"""Trainers' own files as a job, as `shardplan import` reads them."""

from __future__ import annotations

from .record import Answer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Optional


class Note(Record):
    """What became of a key, or what was assumed where none said anything."""

    what: Literal["took", "ignored", "not_counted", "not_known", "assumed"]
    file: Optional[str]
    line: Optional[int]
    key: Optional[str]
    field: Optional[str]
    reason: Optional[str]


class Imported(Answer):
    """The answer of `shardplan.import_`: `job` goes to `estimate`, `search` and the others."""

    job: dict[str, Any]
    notes: list[Note]
    _parts = {"notes": Note}

    def headline(self) -> str:
        model = self.job.get("model")
        if not isinstance(model, str):
            model = (model or {}).get("model_type", "a model")
        taken = sum(note.what == "took" for note in self.notes)
        return f"{model}: {taken} keys taken of {len(self.notes)} notes"

    def rows(self) -> list[dict[str, Any]]:
        """The notes, one a row."""
        columns = ("what", "file", "line", "key", "field", "reason")
        return [{column: note.data.get(column) for column in columns} for note in self.notes]
