"""Which versions of silograph go together: those with the same first two numbers; others are refused by name."""

import re
from importlib.metadata import version

from silograph.errors import SilosError

VERSION = version("silograph")  # once: it is looked up in a file
_FIRST_TWO = re.compile(r"(\d+)\.(\d+)")


def go_together(one: str, other: str) -> bool:
    """Whether two versions understand each other."""
    first, second = _FIRST_TWO.match(one), _FIRST_TWO.match(other)
    return first is not None and second is not None and first.groups() == second.groups()


def difference(ours: str, who: str, theirs: str) -> str:
    """What to say of somebody's other version; nothing where it is the same."""
    if ours == theirs:
        return ""
    if go_together(ours, theirs):
        return f"{who} has silograph {theirs}, the server {ours}. They go together; better have the same everywhere."
    return f"{who} has silograph {theirs}, the server {ours}, which do not go together. Upgrade the older one."


def check_together(whose: str, ours: str, who: str, theirs: str) -> None:
    """Raise where two versions do not go together."""
    if not go_together(ours, theirs):
        raise SilosError(f"{whose}, {who} {theirs[:40]}: they do not go together. Upgrade the older one.")
