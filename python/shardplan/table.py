"""What shows itself as a headline and a table."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Table:
    """A headline and rows: `repr`, HTML for notebooks, and a frame of pandas."""

    def headline(self) -> str:
        """All of it in one line."""
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        """The main table, a mapping a row."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.headline()}>"

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.rows())

    def _repr_html_(self) -> str:
        from .html import page

        return page(self.headline(), self.rows())
