"""The live page of a federation: `federation status --page`, and `federation run --page`."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from silograph.cli.federation.seen import SeenRun
from silograph.cli.federation.status import DATA, ask_status, described, joined
from silograph.errors import SilosError
from silograph.federation.coordinator.supervisor import ServerAwayError
from silograph.report.live import check_page, write_live_data, write_live_page

EVERY = 2.0  # seconds between two looks
MOST_RUNS = 8  # of which rounds and events are shown: those that are not over, and the latest
MOST_POINTS, MOST_EVENTS = 400, 200  # of each run
OVER = ("done", "stopped", "abandoned")
MISSED = ("missing", "lost")  # events after which a site answers again, and the run goes on
FAULTS = (*MISSED, "rejected", "refused", "left-out", "stopped")
WORDS = {
    "started": "the run begins",
    "resumed": "the run goes on from its last round, in a new process",
    "stopped": "the run stopped",
    "finished": "the run is done",
    "rejected": "an answer was not believed",
    "lost": "its process is gone",
}
PHASES = {
    "approval": "waiting for approvals",
    "sites": "waiting for sites",
    "server": "waiting for the server",
    "turn": "waiting for other runs",
}


class LivePage:
    """One page: looks at the desk, and writes what there is to see."""

    def __init__(self, page: Path, home: Path, session: Any, *, command: str, run: str | None = None) -> None:
        check_page(page)
        self._page, self._home, self._session, self._command, self._only = page, home, session, command, run
        self._runs: dict[str, SeenRun] = {}
        self._found: dict[str, Any] | None = None  # what the desk said last
        self._away = ""  # why the server does not answer
        self._written = False

    def update(self, *, ask: bool = False) -> None:
        """Look, and write; `ask`: let the sites be asked anew, too."""
        self._away = ""
        try:
            self._found = ask_status(self._session, ask=ask)
            self._look(self._found["runs"])
        except ServerAwayError as error:
            self._away = str(error)
        self._write()

    def end(self, word: str, text: str) -> None:
        """Write for the last time, and why no more comes."""
        self._write(word, text)

    def _look(self, runs: list[dict[str, Any]]) -> None:
        """Look at the runs that are shown."""
        shown, before = [run["run"] for run in _shown(runs, self._only)], self._runs
        self._runs = {}
        for name in shown:
            seen = before.get(name, SeenRun())
            with suppress(SilosError):  # it was removed just now
                while seen.take(self._session.ask("look", run=name, **seen.known)):
                    pass  # the desk tells some hundred rounds and events at a time
                self._runs[name] = seen

    def _write(self, word: str = "", ended: str = "") -> None:
        data = described(self._home, self._found, away=self._away)
        page = live_data(data, self._runs, command=self._command, only=self._only)
        page |= {"at": None if self._found is None else self._found["now"], "word": word, "ended": ended}
        (write_live_data if self._written and not ended else write_live_page)(self._page, page)
        self._written = True


def live_data(data: dict[str, Any], runs: dict[str, SeenRun], *, command: str, only: str | None) -> dict[str, Any]:
    """What the page shows, from the data of `federation status` and from the runs that were looked at."""
    more = len(data["runs"]) - len(runs)
    return {
        "title": data["federation"],
        "made": time.time(),
        "every": EVERY,
        "command": command,
        "server": data["server"],
        "warnings": [*([data["server"]["why"]] if data["server"]["why"] else []), *data["warnings"]],
        "sites": [
            {**site, "key": None, "joined": joined(site), "data": DATA.get(site["data"], site["data"])}
            for site in data["sites"]
        ],
        "runs": [shown_run(seen) for seen in runs.values()],
        "more": f"… and {more} more: silograph federation runs" if more > 0 and only is None else "",
        "phases": PHASES,
    }


def shown_run(seen: SeenRun) -> dict[str, Any]:
    """One run, few enough points and events for a page."""
    last, rounds = seen.last, seen.rounds
    step = max(1, -(-len(rounds) // MOST_POINTS))
    kept = [number for number in range(len(rounds)) if number % step == 0 or number == len(rounds) - 1]
    ends = [one["finished_at"] for one in rounds]
    faults = [event for event in seen.events if event["kind"] in FAULTS][-MOST_EVENTS:]
    names = ("run", "study", "sites", "state", "why", "since", "begun", "stage", "round", "gap", "last", "times")
    return {
        **{name: last[name] for name in names},
        "gaps": [
            (number + 1, rounds[number]["gap"], _named(rounds[number]))
            for number in kept
            if rounds[number]["gap"] is not None
        ],
        "faults": [bisect_right(ends, event["at"]) for event in faults],
        "n_rounds": len(rounds),
        "megabytes": round(sum(one["bytes_down"] + one["bytes_up"] for one in rounds) / 1e6, 1),
        "events": [_event(event, ends) for event in seen.events[: -MOST_EVENTS - 1 : -1]],
        "n_events": len(seen.events),
    }


def _event(event: dict[str, Any], ends: list[float]) -> dict[str, Any]:
    """An event in words, and, of a site that was missed, after how many seconds a round was finished all the same."""
    kind, at = event["kind"], event["at"]
    said = WORDS.get(kind)
    text = said if kind in ("started", "resumed") else ": ".join(part for part in (said, event["reason"]) if part)
    after = bisect_right(ends, at)
    healed = ends[after] - at if kind in MISSED and after < len(ends) else None
    about = {"at": at, "kind": kind, "site": event["site"], "text": text or kind}
    return {**about, "fault": kind in FAULTS, "healed": healed}


def _named(one: dict[str, Any]) -> str:
    return f"{'set-up' if one['stage'] == 'setup' else 'round'} {one['round']}"


def _shown(runs: list[dict[str, Any]], only: str | None) -> list[dict[str, Any]]:
    """The one run, or those that are not over, and the latest; the newest first. A damaged one has no begin."""
    if only is not None:
        return [run for run in runs if run["run"] == only]
    sound = sorted((run for run in runs if run["begun"] is not None), key=lambda run: run["begun"], reverse=True)
    return sorted(sound, key=lambda run: run["state"] in OVER)[:MOST_RUNS]


def keep_page(page: LivePage, *, ask: bool, begun: Callable[[], None]) -> None:
    """Keep a page up to date until Ctrl-C; `begun` once it can be looked at: to ask sites takes long."""
    page.update()
    try:
        begun()
        if ask:
            page.update(ask=True)
        while True:
            time.sleep(EVERY)
            page.update()
    finally:
        page.end("not followed", "The command that kept this page up to date has ended.")


@contextmanager
def kept_beside(page: LivePage, warn: Callable[[str], None], ended: Callable[[], tuple[str, str]]) -> Iterator[None]:
    """Keep a page up to date beside what the block does; `ended` tells at its end why no more comes.

    A page that cannot be written is no reason to end the rest: it is said once.
    """
    over, complained = threading.Event(), threading.Event()

    def update(action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # whatever it is, it is no reason to end what the page stands beside
            if not complained.is_set():
                complained.set()
                warn(f"The page is not kept up to date: {error}")

    def keep() -> None:
        while not over.is_set():
            update(page.update)
            over.wait(EVERY)

    thread = threading.Thread(target=keep, name="live page")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        update(page.update)
        update(lambda: page.end(*ended()))
