"""Runs that are cut short at any moment, as when the coordinator's process and its sites' end there."""

from __future__ import annotations

import threading
from collections.abc import Callable

from silograph.federation.coordinator.run import CoordinatorRun, Outcome, open_run
from silograph.federation.envelope import open_message
from testing.consortium import Consortium, close

IsDue = Callable[[str, dict, str], bool]


class Killed(BaseException):
    """The coordinator's process ends here; no code of it may hold this up."""


class Cut:
    """A line that is cut at a moment: from then on nobody gets through, as when the process is gone."""

    def __init__(self, consortium: Consortium, is_due: IsDue) -> None:
        self.services = consortium.services()
        self.seen: list[tuple[str, dict, bytes]] = []  # site, head of the request, reply
        self._trust, self._is_due = consortium.trust, is_due
        self._dead, self._busy = False, 0
        self._change = threading.Condition()

    def ask(self, site: str, data: bytes, timeout: float, most: int) -> bytes:
        head = dict(open_message(data, self._trust).head)
        with self._change:
            if self._dead:
                raise Killed
            self._busy += 1
        try:
            self._cut_if(site, head, "before")
            reply = self.services[site].reply(data)
            self.seen.append((site, head, reply))
            self._cut_if(site, head, "after")
            return reply
        finally:
            with self._change:
                self._busy -= 1
                self._change.notify_all()

    def cut(self) -> None:
        """Let nobody get through from now on."""
        with self._change:
            self._dead = True

    def _cut_if(self, site: str, head: dict, moment: str) -> None:
        with self._change:
            self._dead = self._dead or self._is_due(site, head, moment)
            if self._dead:
                raise Killed

    def end(self) -> None:
        """Wait for what is under way at the sites, and let their processes end too."""
        with self._change:
            self._change.wait_for(lambda: self._busy == 0)
        close(self.services)


def attempt_on(line: Cut, consortium: Consortium, run: CoordinatorRun) -> Outcome | None:
    """How an attempt ends, whose processes end with it; nothing if it was cut short."""
    try:
        return consortium.run_attempt(open_run(run.folder), line)
    except Killed:
        return None
    finally:
        line.end()


def cut_short(consortium: Consortium, run: CoordinatorRun, is_due: IsDue) -> bool:
    """Conduct the run with fresh services until the moment is due; whether it was."""
    outcome = attempt_on(Cut(consortium, is_due), consortium, run)
    assert outcome is None or outcome.ended == "done", outcome
    return outcome is None


def moment_of(head: dict) -> tuple:
    return head["kind"], head.get("stage"), head.get("round")
