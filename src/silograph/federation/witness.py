"""How far a site's audit log was: the number of an entry and its hash, as the coordinator keeps it.

A site sends it with each answer, and gets it back when the next run begins. A log that does not have it was restored
from an older copy, and with it what the site knows of its approvals and answers.
"""

import re
from dataclasses import dataclass

from silograph.errors import ProtocolError

HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Witness:
    """An entry of a site's audit log."""

    entries: int
    hash: str

    @property
    def plain(self) -> list[int | str]:
        """As a message holds it."""
        return [self.entries, self.hash]


def parse_witness(value: object) -> Witness:
    """What a message or a file holds, if it can be an entry."""
    match value:
        case [int(entries), str(digest)] if 0 < entries < 2**63 and HASH.fullmatch(digest):
            return Witness(entries, digest)
    raise ProtocolError("message: expected a number and a hash of the audit log. It was not made by silograph.")
