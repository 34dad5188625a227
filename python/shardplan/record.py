"""Answers as objects: attributes with types over the JSON that the program writes."""

from __future__ import annotations

from .table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .question import Question


class Record:
    """One object of an answer: `data` is its JSON, and every key is an attribute.

    An attribute that a class declares and an answer leaves out is None.
    """

    data: dict[str, Any]
    #: The classes of attributes that are objects or lists of objects.
    _parts: dict[str, type[Record]] = {}

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "data":
            raise AttributeError(name)
        if name not in self.data:
            if any(name in vars(base).get("__annotations__", ()) for base in type(self).__mro__):
                return None
            raise AttributeError(f"{type(self).__name__} has no '{name}'")
        value = self.data[name]
        part = self._parts.get(name)
        if part is not None and isinstance(value, dict):
            return part(value)
        if part is not None and isinstance(value, list):
            return [part(item) for item in value]
        return value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.data]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.data == self.data

    def __repr__(self) -> str:
        plain = (
            f"{key}={value!r}"
            for key, value in self.data.items()
            if not isinstance(value, (dict, list))
        )
        return f"{type(self).__name__}({', '.join(plain)})"

    def to_dict(self) -> dict[str, Any]:
        """The JSON as it came."""
        return self.data


class Answer(Table, Record):
    """A whole answer: also the program's text, and a table.

    `remarks` is what the program says beside it, such as what was taken from which file.
    """

    def __init__(self, question: Question) -> None:
        data, self.remarks = question.answer()
        Record.__init__(self, data)
        self._question = question

    def __str__(self) -> str:
        return self._question.text()
