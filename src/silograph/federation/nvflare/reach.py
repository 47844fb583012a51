"""Whether the server answers, told within seconds and in words, before NVFlare tries for longer and says less."""

import socket
import ssl

from silograph.errors import SilosError
from silograph.federation.coordinator.supervisor import ServerAwayError
from silograph.federation.folders import Kit
from silograph.federation.invitation import Invitation

REACH_SECONDS = 1.5  # to connect, and as long again to greet; a continent away takes a tenth of it
CURE = "Start it there: silograph federation start."


def check_reach(about: Invitation, kit: Kit) -> None:
    """Raise, with the reason, unless the server greets us as the federation's."""
    place = f"The server at {about.server}:{about.port} does not answer"
    if not kit.config.exists():
        raise SilosError(f"{kit.path}: is not here, with which the server is asked. Copy it to this folder.")
    context = ssl.create_default_context(cafile=str(kit.root_certificate))
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(str(kit.certificate), str(kit.key))
    try:
        with (
            socket.create_connection((about.server, about.port), timeout=REACH_SECONDS) as line,
            context.wrap_socket(line, server_hostname=about.server),
        ):
            return
    except socket.gaierror as error:
        raise ServerAwayError(f"{place}: its name cannot be resolved ({error.strerror}). Check the network.") from error
    except ConnectionRefusedError as error:
        raise ServerAwayError(f"{place}: nothing listens on that port. {CURE}") from error
    except TimeoutError as error:
        raise ServerAwayError(
            f"{place} within {REACH_SECONDS:g} s. Check the network, and the server. {CURE}"
        ) from error
    except ssl.SSLCertVerificationError as error:
        raise SilosError(
            f"{about.server}:{about.port}: shows no certificate of this federation ({error.verify_message}). Check the "
            "address in federation.json, the server's certificate and the clock."
        ) from error
    except OSError as error:  # among them, a handshake that is broken off
        raise ServerAwayError(f"{place} ({error}). {CURE}") from error
