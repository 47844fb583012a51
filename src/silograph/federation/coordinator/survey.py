"""Ask every site how it is: its version, and whether its data are ready."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from silograph._util.files import write_text
from silograph.errors import ProtocolError
from silograph.federation.coordinator.request import Silence, Transport
from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.identity import Signer, Trust

STATUS = "status.json"
PATIENCE = 20.0  # seconds for a site to come into reach
DATA_STATES = ("ready", "other nodes", "not readable")


def survey(
    folder: Path, transport: Transport, sites: Sequence[str], *, attempt: str, signer: Signer, trust: Trust
) -> None:
    """Write what the sites say, and when, into the federation's folder."""
    message = SignedMessage({"kind": "status", "nonce": secrets.token_hex(8)}, b"", signer)  # no earlier reply will fit
    with ThreadPoolExecutor(max(len(sites), 1)) as pool:
        told = list(pool.map(lambda site: _status(transport, message, site, trust), sites))
    before = read_status(folder)
    now = {site: one for site, one in zip(sites, told, strict=True) if one is not None}
    text = json.dumps({"attempt": attempt, "sites": before["sites"] | now}, indent=2)
    write_text(folder / STATUS, text + "\n")


def read_status(folder: Path) -> dict[str, Any]:
    """What sites said when they were last asked."""
    path = folder / STATUS
    if not path.exists():
        return {"attempt": None, "sites": {}}
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _status(transport: Transport, message: SignedMessage, site: str, trust: Trust) -> dict[str, Any] | None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        data, digest = message.to(site)
        reply = transport.ask(site, data, 5.0)
        if isinstance(reply, Silence):
            time.sleep(0.2)
            continue
        try:
            found = open_message(reply, trust)
            said = json.loads(found.body)
            if found.sender != site or found.head.get("re") != digest or said["data"] not in DATA_STATES:
                return None
            return {"version": str(said["version"])[:40], "data": said["data"], "at": time.time()}
        except (ProtocolError, ValueError, KeyError, TypeError, RecursionError):
            return None
    return None
