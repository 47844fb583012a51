"""How many rounds a site answered in all, whatever the study.

Rounds are counted for each study, too (approvals.py), but who may write studies without end could ask without end. So
this number is never set back: when it has reached the limit, the site's people raise the limit, knowingly.
"""

from silograph._util.files import write_bytes
from silograph._util.locks import lock
from silograph.errors import ParameterError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused

TABLE = "table"  # beside the studies' numbers, which are called by their SHA-256


def count_table_round(folder: SiteFolder, *, most: int) -> None:
    """Count one more round, or refuse it."""
    folder.rounds.mkdir(exist_ok=True)
    with (folder.rounds / f"{TABLE}.lock").open("ab") as file:
        lock(file)
        used = table_rounds(folder)
        if used >= most:
            raise Refused("rounds", f"all studies together: {most} rounds are used up (max_rounds_table)")
        write_bytes(folder.rounds / TABLE, str(used + 1).encode(), durable=True, under_lock=True)


def table_rounds(folder: SiteFolder) -> int:
    """How many rounds were answered, all studies together."""
    path = folder.rounds / TABLE
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return 0
    if not (text.isdigit() and len(text) < 19):  # taken for 0, it would give every study all rounds again
        raise ParameterError(
            f"{path}: expected a number of rounds, got {text[:20]!r}. Write the number that the audit log shows."
        )
    return int(text)
