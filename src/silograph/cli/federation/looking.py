"""How far a run at the server is, for people: a moving line on a terminal, elsewhere a line for each event."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import Progress

from silograph._util.terminal import visible
from silograph.cli.federation.seen import SeenRun
from silograph.cli.output import span

TOLD = ("note", "waiting", "missing", "compiling", "left-out", "new-keys", "refused")
OLD_SECONDS = 60.0  # after which an event is told as one of earlier
LINE_SECONDS = 10.0  # between two lines about rounds, where no terminal shows them


class Looker:
    """Shows what the desk tells of one run, and knows what was told already."""

    def __init__(self, progress: Progress, *, terminal: bool, say: Callable[[str], None], quiet: bool) -> None:
        self._progress, self._say = progress, say
        self._lines = not terminal and not quiet
        self._task = progress.add_task("Asking the server", total=None)
        self._run = SeenRun()
        self._shown, self._line_at = "", 0.0
        self._told: dict[str | None, str] = {}

    @property
    def known(self) -> dict[str, int]:
        """What the next look need not tell again."""
        return self._run.known

    @property
    def n_rounds(self) -> int:
        """How many rounds the run had."""
        return len(self._run.rounds)

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Say what is done now."""
        self._describe(text)
        yield

    def show(self, seen: dict[str, Any]) -> bool:
        """Show how the run is; whether anything has changed."""
        before, moved = self._shown, self._run.take(seen)
        for event in seen["events"]:
            self._tell(event, seen["now"])
        if seen["state"] == "waiting":
            waited = seen["now"] - seen["since"] if seen["since"] else 0.0
            long = f", for {span(waited)}" if waited >= 1 else ""
            self._describe(f"Waiting for {seen['why']}{long}")
        elif self._run.rounds:
            self._describe(self._progress_of(seen), lasting=seen["state"] == "done")
        return moved or before != self._shown

    def _tell(self, event: dict[str, Any], now: float) -> None:
        """Say what an event says, unless it was the last thing said of that site."""
        site, reason = event["site"], event["reason"] or event["kind"]
        if event["kind"] not in TOLD or self._told.get(site) == reason:
            return
        self._told[site] = reason
        text = reason if site is None else f"{site}: {reason}"
        ago = now - event["at"]
        self._say((f"{span(ago)} ago: " if ago > OLD_SECONDS else "") + text.rstrip(".") + ".")

    def _progress_of(self, seen: dict[str, Any]) -> str:
        rounds = self._run.rounds
        last = rounds[-1]
        stage = "Set-up" if last["stage"] == "setup" else "Round"
        gap = "" if last["gap"] is None else f", certified gap {last['gap']:.1e}"
        size = sum(one["bytes_down"] + one["bytes_up"] for one in rounds) / 1e6
        of = "" if last["silos"] in (None, len(seen["sites"])) else f" with {last['silos']} silos"
        return f"{stage} {last['round']}{gap}: {len(seen['sites'])} sites{of} answered, {size:.1f} MB"

    def _describe(self, text: str, *, lasting: bool = True) -> None:
        """Show a line: at once, or, where there is no terminal, every few seconds unless it stays for long."""
        text = visible(text)
        self._progress.update(self._task, description=text)
        now, word = time.monotonic(), text.split(", for ")[0]
        if word == self._shown:
            return
        self._shown = word
        if self._lines and (lasting or now - self._line_at > LINE_SECONDS):
            self._line_at = now
            self._say(text)
