"""Whether this folder was restored from an older copy: then our log lacks an entry that the coordinator has seen.

    witness.json    `refused`: the entry that our log lacks, since when this site refuses; `accepted`: one that people
                    said it may lack

Whoever makes up an entry gets a refusal, and no more.
"""

import json

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.audit import AuditLog
from silograph.federation.witness import Witness, parse_witness


def check_witness(folder: SiteFolder, log: AuditLog, value: object) -> None:
    """Refuse if the log lacks what the coordinator has seen of it.

    One who has seen nothing, or lost it, says none: that helps nobody who was refused before.
    """
    if value is None:
        if (before := read_witness(folder, "refused")) is not None:
            raise Refused("restored", f"our log lacks entry {before.entries}, and nobody has said that it may")
        return
    witness = parse_witness(value)
    if log.has(witness) or witness == read_witness(folder, "accepted"):
        return
    _write(folder, refused=witness, accepted=read_witness(folder, "accepted"))
    raise Refused("restored", f"our log lacks entry {witness.entries} with the hash {witness.hash}")


def read_witness(folder: SiteFolder, which: str) -> Witness | None:
    """The entry that was `refused` last, or `accepted` last."""
    try:
        found = parse_json(folder.witness.read_bytes()).get(which)
    except FileNotFoundError:
        return None
    return None if found is None else parse_witness(found)


def accept(folder: SiteFolder, witness: Witness) -> None:
    """Answer from now on although the log lacks this entry."""
    _write(folder, refused=None, accepted=witness)


def _write(folder: SiteFolder, *, refused: Witness | None, accepted: Witness | None) -> None:
    about = {"refused": refused and refused.plain, "accepted": accepted and accepted.plain}
    write_bytes(folder.witness, json.dumps(about).encode(), durable=True)
