"""Whether the server answers the lead, told within seconds and in words; NVFlare tries for longer and says less."""

from silograph.errors import SilosError
from silograph.federation.coordinator.supervisor import ServerAwayError
from silograph.federation.folders import Kit
from silograph.federation.invitation import Invitation
from silograph.federation.reach import Step, reach

REACH_SECONDS = 1.5  # for each step; a continent away takes a tenth of it
START = "Start it there: silograph federation start."
CURES: dict[Step, str] = {
    "name": "Check the network.",
    "port": START,
    "tls": START,
    "certificate": "Check the address in federation.json, certificates and clocks, and what the server's log says.",
}


def check_reach(about: Invitation, kit: Kit) -> None:
    """Raise, with the reason, unless the server and we accept each other."""
    if not kit.config.exists():
        raise SilosError(f"{kit.path}: is not here, with which the server is asked. Copy it to this folder.")
    fault = reach(about, kit, seconds=REACH_SECONDS).fault
    if fault is None:
        return
    says = f"The server at {about.server}:{about.port} does not answer: {fault.found}. {CURES[fault.step]}"
    raise SilosError(says) if fault.step == "certificate" else ServerAwayError(says)
