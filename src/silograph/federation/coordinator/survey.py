"""Ask every site how it is: its version, and whether its data are ready."""

import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from silograph._util.documents import parse_json
from silograph._util.files import write_json
from silograph.errors import ProtocolError
from silograph.federation.coordinator.request import SMALL_BODY, Oversized, Silence, Transport
from silograph.federation.coordinator.witnesses import Witnesses
from silograph.federation.envelope import SignedMessage, largest_message, open_message
from silograph.federation.folders import FederationFolder
from silograph.federation.identity import Signer, Trust

REACH_SECONDS, TRY_SECONDS = 20.0, 5.0  # for a site to come into reach, and for one try
MOST = largest_message(SMALL_BODY)  # bytes of an answer
READING_SECONDS, FIRST_PAUSE = 40.0, 0.5  # for a site to read its data in full, and between the first two questions
DATA_STATES = ("ready", "reading", "other nodes", "not readable", "restored")


def survey_sites(
    federation: FederationFolder,
    transport: Transport,
    sites: Sequence[str],
    *,
    attempt: str,
    signer: Signer,
    trust: Trust,
) -> None:
    """Ask the sites, and write their answers and the time into the federation's folder."""
    witnesses, head = Witnesses(federation.witnesses), {"kind": "status", "nonce": secrets.token_hex(8)}
    message = SignedMessage(head, b"", signer, each=witnesses.head)  # with the nonce, no earlier reply will fit
    with ThreadPoolExecutor(max(len(sites), 1)) as pool:
        replies = list(pool.map(lambda site: _ask_status(transport, message, site, trust, witnesses), sites))
    before = read_status(federation)
    now = {site: reply for site, reply in zip(sites, replies, strict=True) if reply is not None}
    write_json(federation.status, {"attempt": attempt, "sites": before["sites"] | now})


def read_status(federation: FederationFolder) -> dict[str, Any]:
    """The sites' last answers."""
    try:
        return parse_json(federation.status.read_bytes())
    except (OSError, ValueError):  # not there yet, or torn by a power cut: the sites are asked anew
        return {"attempt": None, "sites": {}}


def _ask_status(
    transport: Transport, message: SignedMessage, site: str, trust: Trust, witnesses: Witnesses
) -> dict[str, Any] | None:
    """A site's answer; one that is still reading its data is asked again."""
    deadline, pause, last = time.monotonic() + READING_SECONDS, FIRST_PAUSE, None
    while time.monotonic() < deadline:
        answer = _ask_once(transport, message, site, trust, witnesses)
        if answer is None or answer["data"] != "reading":
            return answer or last
        last = answer
        time.sleep(pause)
        pause *= 1.5
    return last


def _ask_once(
    transport: Transport, message: SignedMessage, site: str, trust: Trust, witnesses: Witnesses
) -> dict[str, Any] | None:
    deadline = time.monotonic() + REACH_SECONDS
    while time.monotonic() < deadline:
        data, digest = message.to(site)
        reply = transport.ask(site, data, TRY_SECONDS, MOST)
        if isinstance(reply, Silence):
            time.sleep(0.2)
            continue
        if isinstance(reply, Oversized) or len(reply) > MOST:
            return None
        try:
            found = open_message(reply, trust)
            said = parse_json(found.body)
            if found.sender != site or found.head.get("re") != digest or said["data"] not in DATA_STATES:
                return None
            witnesses.see(site, found)
            return {"version": str(said["version"])[:40], "data": said["data"], "at": time.time()}
        except (ProtocolError, ValueError, KeyError, TypeError):
            return None
    return None
