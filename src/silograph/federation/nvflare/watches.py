"""What a host watches while its process runs, and says.

At the server: who comes, goes and is refused. At a site: whether it is connected and why not, which studies wait, which
runs began and ended.
"""

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from silograph.errors import SilographError
from silograph.federation.certificates import federation_warnings, site_warnings
from silograph.federation.folders import FederationFolder, SiteFolder
from silograph.federation.invitation import read_invitation
from silograph.federation.nvflare.handshakes import Handshakes
from silograph.federation.nvflare.host_log import HostLog
from silograph.federation.nvflare.host_pipe import Event
from silograph.federation.reach import Fault, Reached, reach
from silograph.federation.site.address import address_of, used_invitation
from silograph.federation.site.contact import Contact
from silograph.federation.site.notices import Runs, Unreadable, Waiting

LOOK_SECONDS = 1.0  # between two looks
DAY = 86_400.0  # seconds between two looks at certificates; `start` has said what there was to say
PROBE_SECONDS, STEP_SECONDS = 5.0, 3.0  # between two tries of the way to the server without a connection; for a step


class Watch(Protocol):
    """Hears what processes tell and print, in threads of their own, and looks around now and then."""

    def hear(self, event: Event, /) -> None:
        """An event of our own."""

    def keeps(self, line: str, /) -> bool:
        """Whether a line that was printed is worth keeping."""

    def look(self) -> None:
        """Look around; called a few times a second."""

    def close(self) -> None:
        """The host ends."""


class LogWatch:
    """Says what our processes log."""

    def __init__(self, log: HostLog) -> None:
        self._log = log

    def hear(self, event: Event) -> None:
        """Say what is a line."""
        if event.get("kind") == "log":
            self._log.say_rarely(str(event.get("text")), f"{event.get('place')} {event.get('site')}")

    def keeps(self, line: str) -> bool:
        """All that is printed."""
        return True

    def look(self) -> None:
        """There is nothing to look at."""

    def close(self) -> None:
        """Nothing is open."""


class _Daily:
    """Says once a day what there is to say: a host runs for months."""

    def __init__(self, log: HostLog, warnings: Callable[[], list[str]]) -> None:
        self._log, self._warnings, self._next = log, warnings, time.monotonic() + DAY

    def look(self) -> None:
        """Say it, if a day has passed."""
        if time.monotonic() < self._next:
            return
        self._next += DAY
        try:
            for warning in self._warnings():
                self._log.say(warning)
        except SilographError as error:
            self._log.say(str(error))


class ServerWatch(LogWatch):
    """Watches the server."""

    def __init__(self, federation: FederationFolder, log: HostLog) -> None:
        super().__init__(log)
        self._handshakes = Handshakes()
        self._port, self._is_up, self._next = read_invitation(federation.about).port, False, 0.0
        self._certificates = _Daily(log, lambda: federation_warnings(federation.path))

    def keeps(self, line: str) -> bool:
        """Say which connections were refused; what the tracer prints is not kept."""
        traced, refused = self._handshakes.read(line)
        if refused is not None:
            self._log.say_rarely(refused, "handshake")
        return not traced

    def look(self) -> None:
        """Say when the server is up, and which certificates end."""
        self._certificates.look()
        if self._is_up or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_SECONDS
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1.0):
                self._is_up = True
        except OSError:
            return
        self._log.say(f"Listening at port {self._port}.")


class SiteWatch(LogWatch):
    """Watches a site. What happens is handled by one thread, the host's own."""

    def __init__(self, folder: SiteFolder, log: HostLog) -> None:
        super().__init__(log)
        self._folder = folder
        self._invitation = used_invitation(folder)
        self._contact = Contact(address_of(self._invitation), folder.connection, log.say, clock=time.monotonic)
        certificates = _Daily(log, lambda: site_warnings(folder.path))
        self._notices = (Waiting(folder, log.say), Runs(folder, log.say), Unreadable(folder, log.say), certificates)
        self._events = queue.SimpleQueue[Event]()
        self._found = queue.SimpleQueue[Reached]()
        self._looked = self._probed = -PROBE_SECONDS
        self._probing = False

    def hear(self, event: Event) -> None:
        """Keep an event for the next look."""
        self._events.put(event)

    def look(self) -> None:
        """Handle what was heard, and look at the connection, the studies and the runs."""
        while not self._events.empty():
            self._handle(self._events.get())
        self._contact.check()
        self._look_for_the_way()
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        for notices in self._notices:
            try:
                notices.look()
            except (OSError, RuntimeError, SilographError) as error:  # a site goes on that cannot say what happens
                self._log.say_rarely(f"Cannot tell what happens: {error}", "notices")

    def close(self) -> None:
        """Write down that nobody is connected any more."""
        self._contact.end()

    def _handle(self, event: dict[str, Any]) -> None:
        super().hear(event)
        if event.get("kind") != "log":
            self._contact.hear(event)

    def _look_for_the_way(self) -> None:
        """Find out why there is no connection, in a thread: names and ports may take their time."""
        while not self._found.empty():
            self._probing, fault = False, self._found.get().fault
            self._contact.explain(None if fault is None else str(fault))
        now = time.monotonic()
        if self._contact.is_connected or self._probing or now - self._probed < PROBE_SECONDS:
            return
        self._probed = now
        with contextlib.suppress(RuntimeError):  # no thread is to be had now
            threading.Thread(target=self._probe, daemon=True, name="probe").start()
            self._probing = True

    def _probe(self) -> None:
        try:
            self._found.put(reach(self._invitation, self._folder.kit, seconds=STEP_SECONDS))
        except Exception as error:  # without a word here, no reason would ever be told again
            self._found.put(Reached(fault=_untried(error)))


def _untried(error: Exception) -> Fault:
    found = f"the way to it could not be tried ({type(error).__name__}: {error})"
    return Fault(step="name", found=found, cure="Look at it with: silograph site doctor")
