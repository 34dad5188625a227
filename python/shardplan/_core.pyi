"""The module: one question of the command line, asked within the process."""

from collections.abc import Mapping, Sequence
from typing import Any

__version__: str
build_type: str

class Answer:
    """What a question came to."""

    @property
    def exit_code(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def remarks(self) -> str: ...
    @property
    def error(self) -> str: ...

def objects_of(text: str) -> Any: ...
def ask(arguments: Sequence[str], texts: Mapping[str, str]) -> Answer: ...
