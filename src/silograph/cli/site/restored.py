"""What `silograph site restored` does: tell what a folder from an older copy has forgotten, and go on."""

from pathlib import Path

import typer

from silograph.cli.site.account import say, user
from silograph.errors import ParameterError
from silograph.federation.folders import SiteFolder
from silograph.federation.site.audit import AuditLog
from silograph.federation.site.budget import Budget
from silograph.federation.site.restored import accept, read_witness

MEANS = """Since the copy was made, this site has answered requests that it no longer knows of:
  - the audit log lacks their entries. If a later copy of audit.jsonl is left anywhere, keep it as evidence;
  - approvals may be here again that were taken back, and rounds are counted from an older number:
    look at `silograph site approve`, and revoke what should not hold;
  - the ledger lacks versions of the table that were answered for. It cannot tell any more how a changed table
    differs from them: change the table by many rows at once, or not at all;
  - the budget lacks what was opened: what is spent is more than `silograph site budget` shows;
  - site.toml may have older limits: read it.
If you did not restore this folder, somebody else did, or the coordinator says what is not true: ask there first."""

NOT_AS_LOGGED = """If you go on, everything that the file or the audit log tells of is written down as spent. What
neither of them tells of is forgotten."""


def accept_restored(home: Path, *, yes: bool) -> None:
    """Answer again, although the log lacks what the coordinator has seen, or the budget what the log tells of."""
    folder, budget = SiteFolder(home), Budget(home)
    witness, problem = read_witness(folder, "refused"), budget.problem()
    if witness is None and problem is None:
        raise ParameterError("This site has refused nothing as restored: there is nothing to accept.")
    if witness is not None:
        say(
            f"The coordinator has seen entry {witness.entries} of this site's audit log, with the hash",
            f"  {witness.hash}",
            "and this log has no such entry. So this folder was restored from an older copy, or the log was altered.",
        )
    if problem is not None:
        say(f"{problem}.", NOT_AS_LOGGED)
    say(MEANS)
    if not yes and not typer.confirm("Go on with this folder as it is?"):
        say("Nothing was changed. The site goes on refusing.")
        return
    if problem is not None:
        back, aside = budget.accept(by=user())
        say(f"The budget goes on: {back} openings came back from the log.")
        say(*([] if aside is None else [f"The file of before is kept: {aside.name}"]))
    if witness is not None:
        detail = f"goes on without entry {witness.entries}, {witness.hash}"
        AuditLog(folder.audit_log).append({"what": "restored", "by": user(), "detail": detail}, durable=True)
        accept(folder, witness)
    say("The site answers again.")
