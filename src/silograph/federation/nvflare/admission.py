"""Whose connections the server takes: a site's, with the key that is on file for it.

TLS lets in whoever has a certificate below the root and its key, until the certificate ends: there is no list of
revoked ones. NVFlare can disable a client by its name, by a right that the policy gives nobody, and would then refuse
the new key of that name as well. So the server itself compares the key: when a connection comes in, and again for each
message, so that a revocation or a new key holds from the next one on. The server's log says why, and each site's own.
"""

import logging
import time
from typing import Any

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.drivers import grpc_driver
from nvflare.fuel.f3.drivers.driver_params import DriverParams

from silograph.federation.identity import public_key_fingerprint
from silograph.federation.members import KeysOnFile
from silograph.federation.nvflare.host_pipe import tell

PEER_KEY = "silograph_peer_key"  # among a connection's properties: the fingerprint of its certificate's key
REFUSED = grpc_driver.grpc.StatusCode.PERMISSION_DENIED
LOG_SECONDS = 60.0  # before the same is said again: a client tries every few seconds

_log = logging.getLogger(__name__)


def admit_members(keys: KeysOnFile) -> None:
    """Take, in this process, only sites' connections whose key is on file, and drop those of which it is no more."""
    begin, stream, accept = grpc_driver.StreamConnection.__init__, grpc_driver.Servicer.Stream, CoreCell.process_message
    say = _Seldom()

    def begun(self: Any, oq: Any, connector: Any, conn_props: dict[str, Any], *rest: Any, **more: Any) -> None:
        if (context := more.get("context")) is not None:
            conn_props[PEER_KEY] = _certified(context)[1]
        begin(self, oq, connector, conn_props, *rest, **more)

    def checked_stream(self: Any, requests: Any, context: Any) -> Any:
        site, key = _certified(context)
        if objection := _objection(keys, site, key):
            say(f"Refused a connection of site {site}: {objection}.")
            context.abort(REFUSED, objection)  # raises
        yield from stream(self, requests, context)

    def checked_message(self: Any, endpoint: Any, connection: Any, app_id: int, message: Any) -> None:
        properties = {} if connection is None else connection.get_conn_properties()
        site = str(properties.get(DriverParams.PEER_CN.value) or "")
        if properties.get(PEER_KEY) and (objection := _objection(keys, site, properties[PEER_KEY])):
            say(f"Refused a connection of site {site}: {objection}.")
            connection.context.cancel()  # at once; to close waits for what the peer sends next
            connection.close()
        else:
            accept(self, endpoint, connection, app_id, message)

    grpc_driver.StreamConnection.__init__ = begun
    grpc_driver.Servicer.Stream, CoreCell.process_message = checked_stream, checked_message


def report_refusals() -> None:
    """Tell this process's host, a site's, why the server does not take its connections."""
    read = grpc_driver.StreamConnection.read_loop

    def reported(self: Any, frames: Any) -> None:
        read(self, frames)
        # Not of a connection that this side closes: one may wait long for the other side's word
        if self.side == "CLIENT" and not self.closing and frames.code() == REFUSED:
            tell("refused", why=str(frames.details()))

    grpc_driver.StreamConnection.read_loop = reported


class _Seldom:
    """Logs a warning, and the same one again only after a while."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self._said.get(text, -LOG_SECONDS) >= LOG_SECONDS:
            self._said[text] = now
            _log.warning("%s", text)


def _objection(keys: KeysOnFile, name: str, key: str) -> str | None:
    """Why a peer is not taken; processes of this machine have no certificate, and no site's name has an "@"."""
    return None if not key or "@" in name else keys.objection(name, key)


def _certified(context: Any) -> tuple[str, str]:
    """The name and the key in the certificate of a connection's peer; empty where none is asked for."""
    about = context.auth_context()
    names, certificates = about.get("x509_common_name"), about.get("x509_pem_cert")
    if not (names and certificates):
        return "", ""
    return names[0].decode("utf-8"), public_key_fingerprint(certificates[0])
