"""What the coordinator has seen of each site's audit log: the last entry that the site named in an answer.

    witnesses/SITE.json    [number, hash]; whole or absent, and never replaced by a lower number

Each run begins with it, so that a site notices when its folder was restored from an older copy.
"""

import json
from pathlib import Path
from typing import Any

from silograph._util.files import make_folder, write_json
from silograph.errors import ProtocolError
from silograph.federation.envelope import VerifiedMessage
from silograph.federation.witness import Witness, parse_witness


class Witnesses:
    """The last entry of each site."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def head(self, site: str) -> dict[str, Any]:
        """What a message to this site says of it: nothing, if none was seen or the file is damaged."""
        known = self._read(site)
        return {} if known is None else {"witness": known.plain}

    def see(self, site: str, answer: VerifiedMessage) -> None:
        """Keep the entry that an answer names, if it is a later one."""
        seen, known = parse_witness(answer.head.get("witness")), self._read(site)
        if known is None or seen.entries > known.entries:
            make_folder(self._folder)
            write_json(self._folder / f"{site}.json", seen.plain)

    def _read(self, site: str) -> Witness | None:
        try:
            return parse_witness(json.loads((self._folder / f"{site}.json").read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, ProtocolError):  # the site then misses a warning, and nothing else
            return None
