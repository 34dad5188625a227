"""What goes wrong: an input that cannot be understood, said as the program says it."""

from __future__ import annotations


class InputError(ValueError):
    """A bad input; its message is the program's, and the attributes are its parts.

    `file` is the path as it was given, or "<job>" and the like for what was no file; an attribute
    is "" or 0 where it is not known.
    """

    def __init__(
        self,
        message: str,
        file: str = "",
        key: str = "",
        expected: str = "",
        nearest: str = "",
        line: int = 0,
        column: int = 0,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.key = key
        self.expected = expected
        self.nearest = nearest
        self.line = line
        self.column = column


class DoesNotFit(RuntimeError):
    """A run that was to end before its first step if it is predicted not to fit."""
