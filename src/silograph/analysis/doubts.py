"""A doubt about silos: a sentence or two on all silos that it is about. What was seen, in numbers, and what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from silograph._util.checks import MOST_NAMED, list_names

CHANCE = "Weak edges may be chance: believe the strong ones, add samples, or leave nodes out."


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is doubtful of which silos, in words."""

    kind: str
    silos: tuple[str, ...]
    text: str


def as_warnings(doubts: Sequence[Doubt]) -> dict[str, str]:
    """By kind, as a run's record has them."""
    return {doubt.kind: doubt.text for doubt in doubts}


def list_remarks(remarks: Mapping[str, str]) -> str:
    """Names with a remark each, a long list cut short: `'a' (8 for 30), 'b' (9 for 30) and 3 more`."""
    if len(remarks) > 1 and len(set(remarks.values())) == 1:
        return f"{list_names(list(remarks))} ({next(iter(remarks.values()))} each)"
    first = ", ".join(f"{name!r} ({remark})" for name, remark in list(remarks.items())[:MOST_NAMED])
    return first if len(remarks) <= MOST_NAMED else f"{first} and {len(remarks) - MOST_NAMED} more"
