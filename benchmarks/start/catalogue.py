"""What the command line is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.processes import work_alone
from benchmarks.suite import Effort, Part, Record, Suite

NAME = "start"
COLD_LAPS = 3  # to compile takes long, and always the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command, with or without loops that an earlier one compiled."""

    name: str  # help or learn
    cold: bool

    def __str__(self) -> str:
        if self.name == "help":
            return "silograph --help"
        return f"silograph learn, {'nothing compiled yet' if self.cold else 'loops compiled before'}"


COMMANDS = (Command(name="help", cold=False), Command(name="learn", cold=False), Command(name="learn", cold=True))


def measure(command: Command, effort: Effort, earlier: Sequence[Record]) -> Record:
    """Run the command in one fresh process after the other."""
    laps = min(effort.laps, COLD_LAPS) if command.cold else effort.laps
    found: Record = work_alone(NAME, "run", command.name, int(command.cold), laps)
    return found


SUITE = Suite(name=NAME, parts={"start": Part(full=COMMANDS, quick=COMMANDS[:2], measure=measure)})
