"""What the desk has told of one run, over many looks at it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class SeenRun:
    """One run as it was last told, and all its rounds and events."""

    last: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def known(self) -> dict[str, int]:
        """What the next look need not tell again."""
        after = self.events[-1]["id"] if self.events else 0
        return {"after": after, "skip": len(self.rounds), "generation": self.last.get("generation", 0)}

    def take(self, seen: dict[str, Any]) -> bool:
        """Take in a look; whether it told of rounds or events."""
        self.last = {name: value for name, value in seen.items() if name not in ("rounds", "events", "skipped")}
        self.rounds[seen["skipped"] :] = seen["rounds"]
        self.events += seen["events"]
        return bool(seen["rounds"] or seen["events"])
