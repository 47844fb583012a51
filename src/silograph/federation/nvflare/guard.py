"""Who may say what: every message is held to the connection that it came by.

NVFlare holds a connection to the name in the peer's certificate, but takes a message's own word for its origin, and the
process of a job takes commands from everybody who was let in. So an enrolled site could pose as the server, and end any
run. Here a message is dropped, and its sender named in the log, unless

- its origin is the peer of its connection, or one of the peer's own processes;
- it is for the server or for the peer itself: sites have nothing to say to each other;
- what it asks for is on a list of what a site, or the lead, needs and no more.

All messages pass the server's parent process, which has a connection with each site. What the other processes see comes
from a process that they connected to themselves; they look once more at the origin that it gives.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nvflare.apis.fl_constant import ReservedTopic, ServerCommandNames
from nvflare.fuel.f3.cellnet import cell as cells
from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import CellChannel, CellChannelTopic, MessageHeaderKey, MessageType
from nvflare.fuel.f3.cellnet.fqcn import FQCN
from nvflare.fuel.f3.drivers.connector_info import Mode
from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.fuel.f3.sfm.conn_manager import ConnManager, NullConnection
from nvflare.fuel.f3.sfm.constants import HandshakeKeys
from nvflare.fuel.f3.streaming.stream_const import (
    STREAM_ACK_TOPIC,
    STREAM_CHANNEL,
    STREAM_DATA_TOPIC,
    STREAM_ERROR_TOPIC,
    StreamHeaderKey,
)
from nvflare.private.defs import CellMessageHeaderKeys

from silograph.federation.nvflare.host_pipe import about

Headers = Mapping[str, Any]

ANY = "*"
LONGEST_QUOTE = 80  # characters of what a peer sent
# Channel and topic of all that may be asked: of the server's parent process, by sites and by the lead, and of its
# process of a job, by sites
STREAMS = {(STREAM_CHANNEL, STREAM_ACK_TOPIC), (STREAM_CHANNEL, STREAM_ERROR_TOPIC), (CellChannel.RETURN_ONLY, ANY)}
SITE_ASKS = {
    (CellChannel.SERVER_MAIN, CellChannelTopic.Challenge),
    (CellChannel.SERVER_MAIN, CellChannelTopic.Register),
    (CellChannel.SERVER_MAIN, CellChannelTopic.HEART_BEAT),
    (CellChannel.SERVER_MAIN, CellChannelTopic.REPORT_JOB_FAILURE),
    (CellChannel.SERVER_MAIN, CellChannelTopic.Quit),
    (CellChannel.CELLNET, CellChannelTopic.Bye),
}
LEAD_ASKS = SITE_ASKS | STREAMS | {(CellChannel.HCI, ANY), (CellChannel.AUX_COMMUNICATION, ANY)}
JOB_ASKS = STREAMS | {
    (CellChannel.SERVER_COMMAND, ServerCommandNames.GET_TASK),
    (CellChannel.AUX_COMMUNICATION, ReservedTopic.SYNC_RUNNER),
    (CellChannel.AUX_COMMUNICATION, ReservedTopic.JOB_HEART_BEAT),
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection that came in."""

    name: str
    kind: Literal["site", "lead", "child"]  # child: a process of this machine, which needs no certificate


def guard_messages() -> None:
    """Drop, in this process, what its sender has no right to send."""
    accept, greet = CoreCell.process_message, ConnManager.update_endpoint

    def checked_message(self: Any, endpoint: Any, connection: Any, app_id: int, message: Any) -> None:
        headers, site = message.headers or {}, ""
        if connection is None or isinstance(connection, NullConnection):  # from this very process
            complaint, sender = None, ""
        elif connection.connector.mode == Mode.PASSIVE:
            peer = _peer(endpoint.name, connection)
            complaint, sender = complaint_of(peer, headers), peer.name
            site = peer.name * (peer.kind == "site")  # by its certificate; nobody else's name is
        else:
            sender = _root(headers.get(MessageHeaderKey.ORIGIN))
            complaint = relayed_complaint(sender, _root(self.my_info.fqcn), headers)
        if complaint is None:
            accept(self, endpoint, connection, app_id, message)
        else:
            _log.warning("dropped a message from %s: it %s.", sender, complaint, extra=about(site))

    def checked_greeting(self: Any, connection: Any, data: dict[str, Any]) -> None:
        name, own = str(data.get(HandshakeKeys.ENDPOINT_NAME)), self.local_endpoint.name
        passive = connection.conn.connector.mode == Mode.PASSIVE
        if passive and _certified(connection.conn) is None and not name.startswith(f"{own}."):
            _log.warning("closed a connection of this machine: it says that it is %s.", _quote(name))
            connection.conn.close()
        else:
            greet(self, connection, data)

    CoreCell.process_message, ConnManager.update_endpoint = checked_message, checked_greeting
    # Nobody is connected to because a message says so: over such a connection its sender could pose as the server
    CoreCell._add_adhoc_connector = lambda self, to_cell, url: None
    # The process of a job would end itself once a site says that an answer was too large, or sends what nobody can read
    cells._is_server_job_cell = lambda info: False


def _peer(endpoint: str, connection: Any) -> Peer:
    name = _certified(connection)
    if name is None:
        return Peer(endpoint, "child")
    # Of the lead NVFlare knows each session by a name of its own. No site's name has an "@"
    return Peer(endpoint, "lead") if "@" in name else Peer(name, "site")


def _certified(connection: Any) -> str | None:
    """The name in the peer's certificate; none where no certificate is asked for."""
    name = connection.get_conn_properties().get(DriverParams.PEER_CN.value)
    return None if name in (None, "N/A") else str(name)


def complaint_of(peer: Peer, headers: Headers) -> str | None:
    """What is wrong with a message of this peer's; nothing if it may pass."""
    for key in (MessageHeaderKey.ORIGIN, MessageHeaderKey.FROM_CELL):
        if not _belongs(headers.get(key), peer.name):
            return f"says that it comes from {_quote(headers.get(key))}"
    returned = headers.get(MessageHeaderKey.ORIGINAL_HEADERS)
    if isinstance(returned, dict) and not _belongs(returned.get(MessageHeaderKey.DESTINATION), peer.name):
        return f"returns what went to {_quote(returned.get(MessageHeaderKey.DESTINATION))}"
    if peer.kind == "child":
        return None
    if peer.kind == "site" and headers.get(CellMessageHeaderKeys.CLIENT_NAME, peer.name) != peer.name:
        return f"bears the token of {_quote(headers.get(CellMessageHeaderKeys.CLIENT_NAME))}"
    destination = headers.get(MessageHeaderKey.DESTINATION)
    if destination == FQCN.ROOT_SERVER:
        return _unlisted(headers, SITE_ASKS if peer.kind == "site" else LEAD_ASKS)
    if peer.kind == "site" and _belongs(destination, FQCN.ROOT_SERVER):
        return _unlisted(headers, JOB_ASKS)
    return f"is for {_quote(destination)}"


def relayed_complaint(sender: str, own: str, headers: Headers) -> str | None:
    """What is wrong with a message that the server, or the parent process, passed on."""
    if sender in (FQCN.ROOT_SERVER, own):
        return None
    return _unlisted(headers, JOB_ASKS) if own == FQCN.ROOT_SERVER else "is of another site"


def _unlisted(headers: Headers, asks: set[tuple[str, str]]) -> str | None:
    """A complaint of a request that is not among these; an answer is no request."""
    if headers.get(MessageHeaderKey.MSG_TYPE) in (MessageType.REPLY, MessageType.RETURN):
        return None
    channel, topic = str(headers.get(MessageHeaderKey.CHANNEL)), str(headers.get(MessageHeaderKey.TOPIC))
    if (channel, topic) == (STREAM_CHANNEL, STREAM_DATA_TOPIC):  # a request in pieces
        channel, topic = str(headers.get(StreamHeaderKey.CHANNEL)), str(headers.get(StreamHeaderKey.TOPIC))
    if (channel, topic) in asks or (channel, ANY) in asks:
        return None
    return f"asks for {_quote(topic)} on {_quote(channel)} of {_quote(headers.get(MessageHeaderKey.DESTINATION))}"


def _belongs(place: object, name: str) -> bool:
    """Whether this is the name of a member, or of one of its processes."""
    return isinstance(place, str) and (place == name or place.startswith(f"{name}."))


def _root(place: object) -> str:
    """The site, or `server`, to which a process belongs: that of a job is named `SITE.JOB`."""
    return str(place).split(".", 1)[0]


def _quote(text: object) -> str:
    return repr(str(text)[:LONGEST_QUOTE])
