"""Hooks in NVFlare's processes by which the host knows who is connected: evidence, not NVFlare's words.

A site's parent process tells what the server answers to its registration and its heartbeats. Both sides say their
versions and their clocks when they connect, in the greeting that NVFlare exchanges over each connection. The server's
parent process logs which sites connect, leave and are refused. A connection over which nothing comes back any more is
closed after seconds: otherwise it would be noticed by the operating system only, after a quarter of an hour.
"""

import functools
import logging
import re
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import CellChannel, CellChannelTopic, MessageHeaderKey, ReturnCode
from nvflare.fuel.f3.drivers import grpc_driver
from nvflare.fuel.f3.drivers.connector_info import Mode
from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.fuel.f3.sfm.conn_manager import ConnManager
from nvflare.fuel.f3.sfm.constants import HandshakeKeys
from nvflare.private.fed.server.fed_server import FederatedServer

from silograph.federation.nvflare.host_pipe import TellHost, about, tell

OURS, THEIRS = "silograph", "nvflare"  # in a greeting: the versions
TOLD = (CellChannelTopic.Register, CellChannelTopic.HEART_BEAT)
KEEPALIVE = (  # milliseconds
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),  # of the other side's, or it would be cut off
)
_VERSION = re.compile(r"(?=.{1,24}$)\d+\.\d+[\w.+-]*", re.ASCII)

_log = logging.getLogger(__name__)


def tell_host() -> None:
    """Bring our own log lines of this process to the host."""
    logging.getLogger("silograph").addHandler(TellHost())


def keep_alive() -> None:
    """Notice soon when nothing comes back over a connection."""
    grpc_driver.GRPC_DEFAULT_OPTIONS.extend(KEEPALIVE)


def greet_with_versions() -> None:
    """Say in each greeting of this process which versions it is."""
    make = ConnManager.__init__

    @functools.wraps(make)
    def make_with_versions(self: Any, *arguments: Any, **settings: Any) -> None:
        make(self, *arguments, **settings)
        for name in (OURS, THEIRS):
            self.local_endpoint.set_prop(name, version(name))

    ConnManager.__init__ = make_with_versions


def report_server() -> None:
    """Tell the host of a site what the server answers, and what it says of itself."""
    send, greet = CoreCell.send_request, ConnManager.update_endpoint

    @functools.wraps(send)
    def send_and_tell(self: Any, channel: str, topic: str, *arguments: Any, **settings: Any) -> Any:
        reply = send(self, channel, topic, *arguments, **settings)
        if channel == CellChannel.SERVER_MAIN and topic in TOLD:
            code = reply.get_header(MessageHeaderKey.RETURN_CODE)
            tell("answer", to=topic, code=str(code), error=str(reply.get_header(MessageHeaderKey.ERROR) or ""))
        return reply

    def noted(self: Any, connection: Any, data: dict[str, Any]) -> None:
        said = dict(data)
        greet(self, connection, data)
        if connection.conn.connector.mode == Mode.ACTIVE:  # a site's parent process connects to the server alone
            clock = said.get(HandshakeKeys.TIMESTAMP)
            ahead = round(clock - time.time(), 3) if isinstance(clock, float) else None
            tell("server", version=_version(said, OURS), nvflare=_version(said, THEIRS), clock=ahead)

    CoreCell.send_request, ConnManager.update_endpoint = send_and_tell, noted


def log_sites() -> None:
    """Log at the server which sites connect, are gone, and are refused."""
    greet, close, presence = ConnManager.update_endpoint, ConnManager.close_connection, Presence()

    def noted(self: Any, connection: Any, data: dict[str, Any]) -> None:
        said, place = dict(data), _place(connection.conn)
        try:
            greet(self, connection, data)
        except Exception as error:
            if place is not None:
                who = about(str(_certified(connection.conn)))
                _log.warning("Refused a connection from %s: %s", place, str(error)[:200], extra=who)
            raise
        if (name := _site_of(connection)) is not None and (text := presence.came(name, connection.conn.name)):
            release = _version(said, OURS) or "of an unknown version"
            _log.info("%s from %s, silograph %s.", text, place, release, extra=about(name))

    def closed(self: Any, connection: Any) -> None:
        known = self.sfm_conns.get(connection.name)
        close(self, connection)
        name = None if known is None else _site_of(known)
        if name is not None and (text := presence.left(name, connection.name)):
            _log.info("%s.", text, extra=about(name))

    ConnManager.update_endpoint, ConnManager.close_connection = noted, closed
    for name in ("register_client", "client_heartbeat"):
        setattr(FederatedServer, name, _logging_refusals(getattr(FederatedServer, name)))


class Presence:
    """Which sites are there, by the connections that each has: a new one may come before the old one is closed.

    Times are counted, so that no line is one that was said before: the last line of a site says how it is.
    """

    def __init__(self) -> None:
        self._connections: dict[str, set[str]] = {}
        self._times: dict[str, int] = {}
        self._lock = threading.Lock()

    def came(self, site: str, connection: str) -> str:
        """What to say of a connection that was made; nothing if the site was there."""
        with self._lock:
            there = self._connections.setdefault(site, set())
            if there:
                there.add(connection)
                return ""
            there.add(connection)
            times = self._times[site] = self._times.get(site, 0) + 1
        return f"Site {site} connected{f', for the {_nth(times)} time,' if times > 1 else ''}"

    def left(self, site: str, connection: str) -> str:
        """What to say of a connection that was closed; nothing if the site has another."""
        with self._lock:
            there = self._connections.get(site, set())
            if connection not in there:
                return ""
            there.discard(connection)
            times = self._times.get(site, 1)
            if there:
                return ""
        return f"Site {site} is not connected any more{f', for the {_nth(times)} time' if times > 1 else ''}"


def _nth(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _logging_refusals(answer: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(answer)
    def answer_and_log(self: Any, request: Any) -> Any:
        reply = answer(self, request)
        if reply.get_header(MessageHeaderKey.RETURN_CODE) == ReturnCode.UNAUTHENTICATED:
            # The guard lets no message pass that says it comes from elsewhere
            site, why = str(request.get_header(MessageHeaderKey.ORIGIN)), reply.get_header(MessageHeaderKey.ERROR)
            _log.warning("Refused the site %s: %s.", site[:80], str(why)[:200], extra=about(site))
        return reply

    return answer_and_log


def _site_of(connection: Any) -> str | None:
    """The site whose own process is at the other end of a connection; none of the lead's sessions, and of any job's."""
    if connection.sfm_endpoint is None or _place(connection.conn) is None:
        return None
    name = str(_certified(connection.conn))
    return name if connection.sfm_endpoint.endpoint.name == name and "@" not in name else None


def _certified(connection: Any) -> object:
    """The name in the peer's certificate."""
    return connection.get_conn_properties().get(DriverParams.PEER_CN.value)


def _place(connection: Any) -> str | None:
    """Where the other side of a connection from outside is; none of a process of this machine."""
    if connection.connector.mode != Mode.PASSIVE or _certified(connection) in (None, "N/A"):
        return None
    address = str(connection.get_conn_properties().get(DriverParams.PEER_ADDR.value))
    return address.rpartition(":")[0].removeprefix("ipv4:").removeprefix("ipv6:")


def _version(said: dict[str, Any], name: str) -> str | None:
    """A version that the other side says; none if it is no version, but words of its choice."""
    found = said.get(name)
    return found if isinstance(found, str) and _VERSION.fullmatch(found) else None
