"""Answers in notebooks: a headline and a table."""

from __future__ import annotations

from html import escape
from .amounts import in_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: More would not be read; to_pandas() has all.
_MOST_ROWS = 50


def page(headline: str, rows: list[dict[str, Any]]) -> str:
    """HTML without scripts or styles of its own, as a notebook shows it."""
    html = f"<p><b>{escape(headline)}</b></p>"
    if not rows:
        return html
    columns = list(dict.fromkeys(column for row in rows for column in row))
    heads = "".join(f"<th>{escape(_words(column))}</th>" for column in columns)
    lines = "".join(_line(row, columns) for row in rows[:_MOST_ROWS])
    html += f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
    if len(rows) > _MOST_ROWS:
        html += f"<p>{_MOST_ROWS} of {len(rows)} rows</p>"
    return html


def _line(row: dict[str, Any], columns: list[str]) -> str:
    cells = "".join(_cell(row.get(column), _is_bytes(row, column)) for column in columns)
    return f"<tr>{cells}</tr>"


def _is_bytes(row: dict[str, Any], column: str) -> bool:
    """By the column's name, or by the row's, where the row says what it is about."""
    about = str(row.get("quantity", ""))
    return "bytes" in column or ("bytes" in about and column != "error")


def _cell(value: Any, is_bytes: bool) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if not isinstance(value, (int, float)):
        return f'<td style="text-align: left">{escape(str(value))}</td>'
    if is_bytes:
        text = in_bytes(value)
    else:
        text = f"{value:,.4g}" if value % 1 else f"{value:,.0f}"
    return f'<td style="text-align: right">{text}</td>'


def _words(column: str) -> str:
    return column.replace("_bytes", "").replace("_", " ")
