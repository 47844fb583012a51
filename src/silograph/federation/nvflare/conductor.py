"""The conductor's process at the server, which `silograph federation start` keeps beside the server itself.

python -m silograph.federation.nvflare.conductor FEDERATION/conductor
"""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from silograph.federation.coordinator.conductor import Conductor
from silograph.federation.folders import FederationFolder
from silograph.federation.nvflare.parent import end_with_parent

if TYPE_CHECKING:
    from silograph.federation.nvflare.session import ServerSession


def main(kit: Path) -> None:
    """Conduct the runs of the federation whose kit this is, until somebody ends the process."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    end_with_parent()
    federation = FederationFolder(kit.parent)
    Conductor(federation, lambda: _session(federation)).conduct()


def _session(federation: FederationFolder) -> "ServerSession":
    from silograph.federation.nvflare.session import conductor_session  # with NVFlare, which nobody needs while idle

    return conductor_session(federation.path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
