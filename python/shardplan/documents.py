"""What a caller has, as what the program takes: words and paths, and texts that stand for files."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Union

    #: A name, a path, a mapping, a dataclass, or an object with `to_dict()`, as the configurations
    #: and arguments of transformers have it.
    Document = Union[str, os.PathLike[str], Mapping[str, Any], object]


class Documents:
    """Collects the texts of one question under the names that errors call them by."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def word(self, document: Document, name: str) -> str:
        """What stands for the document in the arguments: a path or words as they are, or a name."""
        if isinstance(document, (str, os.PathLike)):
            return os.fspath(document)
        import json  # with what it imports, as slow as all of this package

        plain = _plain(document)
        if plain is not document:
            name = type(document).__name__
        word = f"<{name}>"
        for number in range(2, len(self.texts) + 3):
            if word not in self.texts:
                break
            word = f"<{name} {number}>"
        self.texts[word] = json.dumps(plain, default=_json_of)
        return word


def _plain(document: object) -> Mapping[str, Any]:
    from collections.abc import Mapping

    if isinstance(document, Mapping):
        return document
    if callable(getattr(document, "to_dict", None)):
        return document.to_dict()  # type: ignore[attr-defined, no-any-return]
    if hasattr(document, "__dataclass_fields__") and not isinstance(document, type):
        import dataclasses

        return dataclasses.asdict(document)  # type: ignore[call-overload, no-any-return]
    raise TypeError(
        f"{type(document).__name__} is no name, path, mapping, dataclass or object with to_dict()"
    )


def _json_of(value: object) -> object:
    """Of what JSON does not have: a set as a list, anything else as it is printed."""
    return sorted(value, key=str) if isinstance(value, (set, frozenset)) else str(value)
