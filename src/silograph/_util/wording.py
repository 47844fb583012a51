"""Words that messages of several packages share."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMED = 8


def list_names(names: Sequence[str]) -> str:
    """'a', 'b' and, of more than a reader wants to see, how many more there are."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"
