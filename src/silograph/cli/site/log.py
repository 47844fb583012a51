"""What `silograph site log` shows: the entries of the audit log as a table for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from silograph._util.terminal import visible
from silograph.federation.site.openings import opening_in


def log_table(entries: Sequence[Mapping[str, Any]]) -> Table:
    """The log for people."""
    table = Table(title=None)
    for name in ("time (UTC)", "what", "who", "request", "left this site", "bytes"):
        table.add_column(name, justify="right" if name == "bytes" else "left", overflow="fold")
    for entry in entries:
        cells = (
            str(entry["time"])[:19].replace("T", " "),
            str(entry.get("what", "")),
            str(entry.get("from") or entry.get("by") or ""),
            " ".join(str(entry[name]) for name in ("kind", "stage", "step", "round") if name in entry),
            _left(entry),
            str(entry.get("bytes_sent", entry.get("bytes", ""))),
        )
        table.add_row(*(Text(visible(cell.replace("\n", " "))) for cell in cells))
    return table


def _left(entry: Mapping[str, Any]) -> str:
    """What left, or why nothing did; of other entries, what they tell."""
    detail = str(entry.get("detail", ""))
    not_sent = f" (reason, not sent: {detail})" if detail else ""
    if entry.get("what") == "asked":
        return ""
    if entry.get("what") == "spent":
        return _spent(entry)
    if "code" in entry:  # which is all that the coordinator was told: the reason is for people here
        return f"nothing: {entry['code']}{not_sent}"
    return f"{entry['left']}{not_sent}" if entry.get("left") else detail


def _spent(entry: Mapping[str, Any]) -> str:
    opening = opening_in(entry)
    if opening is None:
        return "an opening, which this entry does not tell whole"
    sums = "a masked sum" if opening.masked else "open sums"
    noise = f"epsilon = {opening.epsilon:.4g}, delta = {opening.delta:g}" if opening.noisy else "no noise"
    return f"charged to the budget: {sums} of the study {opening.name!r}, {noise}"
