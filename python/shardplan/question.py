"""A question as the program is asked it: a command, its arguments, its flags."""

from __future__ import annotations

from . import _core
from .documents import Documents
from .errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .documents import Document


class Question:
    """Asks with JSON for an answer's data, and once more for its text when that is wanted."""

    def __init__(
        self, command: str, words: list[tuple[Document, str]], fields: Mapping[str, Any]
    ) -> None:
        documents = Documents()
        self._arguments = [command]
        self._arguments += [documents.word(document, name) for document, name in words]
        for field, value in fields.items():
            if value is not None:
                flag = field.replace("_", "-")
                self._arguments.append(f"--{flag}={_flag_value(value, field, documents)}")
        self._texts = documents.texts

    def answer(self) -> tuple[dict[str, Any], str]:
        """The answer's JSON, and the remarks beside it. Raises InputError."""
        answer = self._ask("json")
        return _core.objects_of(answer.text), answer.remarks

    def text(self) -> str:
        """What the program prints."""
        return self._ask("text").text

    def _ask(self, form: str) -> _core.Answer:
        answer = _core.ask([*self._arguments, f"--format={form}"], self._texts)
        if answer.error:
            raise InputError(**_core.objects_of(answer.error))
        return answer


def _flag_value(value: Any, field: str, documents: Documents) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    if isinstance(value, (int, float)):
        return str(value)
    return documents.word(value, field)
