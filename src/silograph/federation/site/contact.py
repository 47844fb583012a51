"""Whether this site is connected, as its host knows it, and in which words it says so when that changes.

    logs/connection.json    the same for `site status` and `site doctor`, written when it changes

Evidence are the server's answers to the heartbeats of NVFlare's process here. Without any for some seconds, the server
is away; why, the host then finds out for itself (`reach`).
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph.federation.versions import VERSION

AWAY_SECONDS = 12.0  # without an answer; NVFlare asks every 4 s
PATIENCE_SECONDS = 20.0  # until it is said that a server that can be reached does not let us in
FAR_OFF = 30.0  # seconds between two clocks
State = Literal["connecting", "connected", "away"]
WELL = "ok"
LONGEST_REASON = 200  # characters of what the server gives


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What is known of the connection."""

    server: str  # HOST:PORT
    state: State = "connecting"
    since: str = ""  # UTC
    why: str | None = None  # not connected
    refused: str | None = None  # why the server does not let this site in, in its words
    version: str | None = None  # of silograph at the server, as it said when it was connected to last
    nvflare: str | None = None
    clock: float | None = None  # seconds that the server's clock was ahead of ours then
    told: str | None = None  # when it said all that, UTC


class Contact:
    """Follows the connection of one site: heard events, found faults, and the passing of time."""

    def __init__(self, server: str, path: Path, say: Callable[[str], None], *, clock: Callable[[], float]) -> None:
        self._path, self._say, self._clock = path, say, clock
        before = read_connection(path)
        known = Connection(server=server) if before is None else replace(before, server=server)
        self.known = replace(known, state="connecting", since=_now(), why=None, refused=None)
        self._answered: tuple[float, str] | None = None  # when, by our clock and for people
        self._refused: str | None = None
        self._lost = clock()  # since when there is no connection
        say(f"Connecting to {server}.")
        self._write()

    @property
    def is_connected(self) -> bool:
        """Whether the server answers."""
        return self.known.state == "connected"

    def hear(self, event: dict[str, Any]) -> None:
        """What NVFlare's process here tells."""
        if event.get("kind") == "server":
            there, nvflare, clock = (event.get(name) for name in ("version", "nvflare", "clock"))
            self.known = replace(self.known, version=there, nvflare=nvflare, clock=clock, told=_now())
            self._write()
            self._compare()
        elif event.get("kind") == "answer" and event.get("code") == WELL:
            self._answered, self._refused = (self._clock(), _now()), None
            self._connect()
        elif event.get("kind") == "answer":
            if event.get("code") == "unauthenticated":
                self._refused = str(event.get("error"))[:LONGEST_REASON]
            self._lose()
        elif event.get("kind") == "refused":  # before anything could be asked
            self._refused = str(event.get("why"))[:LONGEST_REASON]
            self._lose()
            self._tell_refusal(self._refused)

    def check(self) -> None:
        """Notice that no answer comes any more."""
        if self.is_connected and self._answered is not None and self._clock() - self._answered[0] > AWAY_SECONDS:
            self._lose()

    def explain(self, fault: str | None) -> None:
        """Say why there is no connection, if that is news: the fault that was found, if there is one."""
        if self.is_connected:
            return
        if fault is None and self._refused is not None:
            self._tell_refusal(self._refused)
            return
        why = fault
        if fault is None and self._clock() - self._lost > PATIENCE_SECONDS:
            why = "it can be reached, and does not let this site in yet. If that lasts, ask the coordinator"
        if why is None or why == self.known.why:
            return
        self.known = replace(self.known, why=why)
        self._write()
        if self.known.state == "away":
            self._say(f"The server {self.known.server} is away since {shown(self.known.since)}: {why}.")
        else:
            self._say(f"Not connected to {self.known.server}: {why}.")

    def end(self) -> None:
        """The host ends, and with it the connection."""
        if self.is_connected:
            self.known = replace(self.known, state="away", since=_now())
            self._write()

    def _tell_refusal(self, reason: str) -> None:
        """Say that the server does not let this site in, if that is news. It holds until the server answers well."""
        why = refusal(reason)
        if why != self.known.why:
            self.known = replace(self.known, why=why, refused=reason)
            self._write()
            self._say(why)

    def _compare(self) -> None:
        """Say what differs between the server and this site, once for each connection."""
        here, there, ahead = VERSION, self.known.version, self.known.clock or 0.0
        if there not in (None, here):
            self._say(f"The server has silograph {there}, this site {here}: install the same version everywhere.")
        if abs(ahead) > FAR_OFF:
            self._say(f"This machine's clock and the server's are {abs(ahead):.0f} s apart: set the one that is wrong.")

    def _connect(self) -> None:
        if self.is_connected:
            return
        again = " again" * (self.known.state == "away")
        self.known = replace(self.known, state="connected", since=_now(), why=None, refused=None)
        self._write()
        self._say(f"Connected{again} to {self.known.server}.")

    def _lose(self) -> None:
        if self.is_connected and self._answered is not None:
            self._lost = self._clock()
            self.known = replace(self.known, state="away", since=self._answered[1], why=None)
            self._write()

    def _write(self) -> None:
        try:
            write_bytes(self._path, json.dumps(asdict(self.known), indent=1).encode())
        except OSError as error:  # a full disk is no reason to end
            self._say(f"{self._path.name} cannot be written ({error.strerror}): site status will tell what was before.")


def read_connection(path: Path) -> Connection | None:
    """What the host wrote down last; nothing if it never did, or an earlier silograph did."""
    try:
        return Connection(**parse_json(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def refusal(reason: str) -> str:
    """That the server does not let this site in, why, and what to do."""
    cure = "Ask the coordinator"
    if "revoked" in reason:
        cure += "; for a new key: stop the site, move key/ and kit/ away, then: silograph site request"
    return f"The server refuses this site: {reason}. {cure}."


def shown(when: str) -> str:
    """A time for people; what is none, as it is."""
    return _shown(when, "%Y-%m-%d %H:%M:%S")


def shown_minute(when: str) -> str:
    """The same where seconds do not matter."""
    return _shown(when, "%Y-%m-%d %H:%M")


def _shown(when: str, form: str) -> str:
    try:
        return f"{datetime.fromisoformat(when):{form}} UTC"
    except ValueError:
        return when


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
