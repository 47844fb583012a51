"""Bring every run that is wanted to its end, at the server: over kills, and over restarts of the machine.

Each run in hand has a thread and a supervisor of its own, so that the end of one does not touch the others. What its
people should know becomes an event of its history, and why it was left a file: they look on from elsewhere.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from silograph._util.locks import Lock
from silograph.errors import OutputError, SilographError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.orders import (
    conductor_of,
    is_due,
    note,
    order_stamp,
    read_order,
    read_watch,
    write_end,
    write_watch,
)
from silograph.federation.coordinator.run import CoordinatorRun, open_run, run_folders
from silograph.federation.coordinator.states import MOST_AT_ONCE, Order, Phase, look_on
from silograph.federation.coordinator.supervisor import Host, Supervisor
from silograph.federation.folders import FederationFolder

LOOK_SECONDS = 0.5  # between two looks at what is wanted
WATCH_SECONDS = 0.5  # between two looks at a run in hand
WRITE_SECONDS = 4.0  # between two times that an unchanged watch is written
HANDOVER_SECONDS = 10.0  # for a conductor that is killed to let go

_log = logging.getLogger(__name__)


class LeftError(Exception):
    """The run is not wanted any more, or the conductor ends."""


class OpenHost(Host, Protocol):
    """An engine with a connection, which is opened when it is needed."""

    def close(self) -> None:
        """Let the connection go."""


class Conductor:
    """All runs of one federation."""

    def __init__(self, federation: FederationFolder, open_host: Callable[[], OpenHost]) -> None:
        self._federation, self._open_host = federation, open_host
        self._host: OpenHost | None = None
        self._in_hand: dict[str, threading.Thread] = {}
        self._settled: dict[str, int] = {}  # run → the stamp of the last order, with which nothing is to be done
        self._ended = threading.Event()

    def conduct(self) -> None:
        """Until `end`, or until the process is killed, as its host does: that costs nothing."""
        claim = conductor_of(self._federation)
        if not claim.take(wait=HANDOVER_SECONDS):
            raise SilographError(f"{self._federation.path}: its runs have a conductor already. End that one first.")
        try:
            while not self._ended.wait(LOOK_SECONDS):
                self.look()
        finally:
            claim.release()

    def end(self) -> None:
        """Leave all runs as they are, and return from `conduct` when all have been left."""
        self._ended.set()
        for thread in self._in_hand.values():
            thread.join()

    def look(self) -> None:
        """Take in hand what is wanted, as far as there is room."""
        self._in_hand = {name: thread for name, thread in self._in_hand.items() if thread.is_alive()}
        for folder in run_folders(self._federation):
            stamp = order_stamp(folder)
            if folder.name in self._in_hand or self._settled.get(folder.name) == stamp:
                continue
            try:
                settled = not self._see_to(open_run(folder))
            except OutputError as error:  # a full disk: it is tried again
                settled = False
                _log.error("run %s: %s", folder.name, error)
            except Exception as error:  # of one run: no reason to leave the others
                settled = True
                _log.error("run %s: %s: %s", folder.name, type(error).__name__, error)
            if settled:
                self._settled[folder.name] = stamp
        if not self._in_hand and self._host is not None:
            self._host.close()

    def _see_to(self, run: CoordinatorRun) -> bool:
        """Take a run in hand, if it is wanted and there is room; whether it is wanted."""
        order = read_order(run)
        if order is None or not is_due(run):
            return False
        if len(self._in_hand) >= MOST_AT_ONCE:
            keep_watch(run, "turn", (), order)
            return True
        self._host = self._host or self._open_host()
        arguments = (run, self._host, order, self._ended.is_set)
        thread = threading.Thread(target=_bring_to_end, args=arguments, daemon=True, name=f"run {run.name}")
        self._in_hand[run.name] = thread
        thread.start()
        return True


def _bring_to_end(run: CoordinatorRun, host: Host, order: Order, ended: Callable[[], bool]) -> None:
    """Bring one run to its end, or write down why it was left."""
    lock = Lock(run.supervisor_lock)
    if not lock.take(wait=1.0):  # somebody looks whether it is held
        return

    seen = -WATCH_SECONDS

    def look(supervisor: Supervisor) -> None:
        nonlocal seen
        if ended() or read_order(run) != order:
            raise LeftError
        if time.monotonic() - seen >= WATCH_SECONDS:
            seen = time.monotonic()
            keep_watch(run, *supervisor.phase(), order)

    try:
        Supervisor(run, host, tell=lambda text: note(run, text), on_poll=look).finish()
    except LeftError:
        return
    except SilographError as error:
        leave(run, order, str(error))
    except Exception as error:
        _log.exception("run %s", run.name)
        leave(run, order, f"{type(error).__name__}: {error}. This is a defect; the server's log has its trace.")
    finally:
        lock.release()


def leave(run: CoordinatorRun, order: Order, why: str) -> None:
    """Write down why a run is left: for those who ask how it is, and among what happened."""
    write_end(run, order, why)
    with History(run.history) as history:
        history.add_event("stopped", reason=why)


def keep_watch(run: CoordinatorRun, phase: Phase, sites: tuple[str, ...], order: Order) -> None:
    """Write down what a run does or waits for: when that changes, and every few seconds."""
    before, now = read_watch(run), time.time()
    watch = look_on(before, phase, sites, now=now, wanted_since=order.at)
    stale = before is None or abs(now - before.at) > WRITE_SECONDS or before.at < order.at  # clocks are put back, too
    if stale or before is None or (before.phase, before.sites) != (phase, sites):
        write_watch(run, watch)
