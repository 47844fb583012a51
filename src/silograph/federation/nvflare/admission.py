"""Whose connections the server takes: a site's, with the key that is on file for it.

TLS lets in whoever has a certificate below the root and its key, until the certificate ends: there is no list of
revoked ones. NVFlare can disable a client by its name, by a right that the policy gives nobody, and would then refuse
the new key of that name as well. So the server itself compares the key: when a connection comes in, and again for each
message, so that a revocation or a new key holds from the next one on. Refused peers are told why by gRPC, people by the
log.
"""

import logging
import time
from typing import Any

from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.drivers import grpc_driver
from nvflare.fuel.f3.drivers.driver_params import DriverParams

from silograph.federation.identity import public_key_fingerprint
from silograph.federation.members import KeysOnFile

PEER_KEY = "silograph_peer_key"  # among a connection's properties: the fingerprint of its certificate's key
LOG_SECONDS = 60.0  # before the same is said again of the same site: a client tries every few seconds

_log = logging.getLogger(__name__)


def admit_members(keys: KeysOnFile) -> None:
    """Take, in this process, only sites' connections whose key is on file, and drop those of which it is no more."""
    begin, stream, accept = grpc_driver.StreamConnection.__init__, grpc_driver.Servicer.Stream, CoreCell.process_message
    told: dict[tuple[str, str], float] = {}

    def tell(site: str, objection: str) -> None:
        now = time.monotonic()
        if now - told.get((site, objection), -LOG_SECONDS) >= LOG_SECONDS:
            told[site, objection] = now
            _log.warning("refused a connection of the site %r: %s.", site, objection)

    def begun(self: Any, oq: Any, connector: Any, conn_props: dict[str, Any], *rest: Any, **more: Any) -> None:
        if (context := more.get("context")) is not None:
            conn_props[PEER_KEY] = _certified(context)[1]
        begin(self, oq, connector, conn_props, *rest, **more)

    def checked_stream(self: Any, requests: Any, context: Any) -> Any:
        site, key = _certified(context)
        if objection := _objection(keys, site, key):
            tell(site, objection)
            context.abort(grpc_driver.grpc.StatusCode.PERMISSION_DENIED, objection)  # raises
        yield from stream(self, requests, context)

    def checked_message(self: Any, endpoint: Any, connection: Any, app_id: int, message: Any) -> None:
        properties = {} if connection is None else connection.get_conn_properties()
        site = str(properties.get(DriverParams.PEER_CN.value) or "")
        if PEER_KEY in properties and (objection := _objection(keys, site, properties[PEER_KEY])):
            tell(site, objection)
            connection.close()
        else:
            accept(self, endpoint, connection, app_id, message)

    grpc_driver.StreamConnection.__init__ = begun
    grpc_driver.Servicer.Stream, CoreCell.process_message = checked_stream, checked_message


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
