"""The desk as a command of NVFlare's server: `silograph`, for the lead alone, whom NVFlare has authenticated.

A session is of the user whose certificate opened it, and its role is the certificate's. The conductor has the lead's
role, as it submits jobs, but nothing to ask here; so it is the name that is looked at, too.
"""

import logging
from pathlib import Path
from typing import Any

from nvflare.fuel.hci.conn import Connection
from nvflare.fuel.hci.proto import MetaStatusValue, make_meta
from nvflare.fuel.hci.reg import CommandModule, CommandModuleSpec, CommandSpec
from nvflare.fuel.hci.server.authz import PreAuthzReturnCode
from nvflare.fuel.hci.server.constants import ConnProps
from nvflare.private.fed.server.server_cmd_modules import ServerCommandModules

from silograph.federation.coordinator.desk import Desk
from silograph.federation.folders import FederationFolder
from silograph.federation.nvflare.authority import lead_name, read_federation, site_keys

COMMAND = "silograph"

_log = logging.getLogger(__name__)


class DeskModule(CommandModule):  # type: ignore[misc]
    """What NVFlare's server registers, and asks for each command."""

    def __init__(self, folder: Path) -> None:
        self._lead = lead_name(read_federation(folder).name)
        self._engine: Any = None
        self._desk = Desk(FederationFolder(folder), keys=lambda: site_keys(folder), connected=self._connected)

    def get_spec(self) -> CommandModuleSpec:
        """The one command."""
        command = CommandSpec(
            name=COMMAND,
            description="asks the desk of silograph",
            usage=COMMAND,
            handler_func=self.answer,
            authz_func=self.authorize,
        )
        return CommandModuleSpec(name=COMMAND, cmd_specs=[command])

    def authorize(self, connection: Connection, arguments: list[str]) -> PreAuthzReturnCode:
        """The lead, and nobody else."""
        name, role = (connection.get_prop(key, "") for key in (ConnProps.USER_NAME, ConnProps.USER_ROLE))
        if (name, role) == (self._lead, "lead"):
            return PreAuthzReturnCode.OK
        _log.warning("refused the desk to %s, whose role is %s", repr(name)[:80], repr(role)[:80])
        connection.append_error("not authorized", meta=make_meta(MetaStatusValue.NOT_AUTHORIZED, "for the lead alone"))
        return PreAuthzReturnCode.ERROR

    def answer(self, connection: Connection, arguments: list[str]) -> None:
        """Answer; a defect is told as one, and its trace stays in the server's log."""
        self._engine = connection.get_prop(ConnProps.ENGINE)
        try:
            answer = self._desk.answer(connection.get_prop(ConnProps.CMD_PROPS))
        except Exception as error:
            _log.exception("the desk")
            answer = {"error": f"{type(error).__name__} at the server: a defect, whose trace is in the server's log."}
        connection.append_dict(answer, meta=make_meta(MetaStatusValue.OK))

    def _connected(self) -> dict[str, float]:
        return {client.name: float(client.last_connect_time) for client in self._engine.get_clients()}


def open_desk(federation: Path) -> None:
    """Let the server in this process, which is about to start, answer the lead."""
    ServerCommandModules.register_cmd_module(DeskModule(federation))
