"""Amounts for people."""

from __future__ import annotations


def in_bytes(count: float) -> str:
    """In the largest unit of 1024 bytes that leaves 1 or more: "38.2 GiB"."""
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024:
            break
        count, unit = count / 1024, larger
    whole = unit == "B" or abs(count) >= 1000
    return f"{count:.0f} {unit}" if whole else f"{count:.3g} {unit}"
