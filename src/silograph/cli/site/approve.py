"""What `silograph site approve` does: show a study and all that it lets leave, then approve, reject or revoke it."""

from collections.abc import Sequence
from pathlib import Path

import typer

from silograph._util.terminal import lines_of, visible
from silograph.cli.folders import folder_option
from silograph.cli.site.account import say, user
from silograph.cli.site.approve_page import write_approval_page
from silograph.cli.site.asked import AskedStudy, look_at_study
from silograph.cli.site.asked_sections import Listing, Said
from silograph.errors import ParameterError
from silograph.federation.folders import SiteFolder
from silograph.federation.site.approvals import Approvals, sha_of
from silograph.federation.site.audit import AuditLog
from silograph.federation.site.contact import shown_minute
from silograph.federation.site.notices import name_of
from silograph.federation.site.pins import Pins
from silograph.federation.site.settings import read_site
from silograph.federation.study_file import StudyFile


def list_studies(home: Path) -> None:
    """Print the studies that wait, and those approved."""
    approvals = Approvals(home)
    waiting, approved = approvals.pending(), approvals.approved()
    if not waiting and not approved:
        say("No study waits for approval, and none is approved.")
    for one in waiting:
        say(f"waits     {one.sha}  {name_of(one.path)!r}, asked by {one.asked_by!r} at {shown_minute(one.when)}")
        say(f"          read it: {one.path}")
        say(f"          approve: silograph site approve {one.sha}{folder_option(home)}")
    for each in approved:
        rounds, when = approvals.rounds_used(each.sha), shown_minute(each.when)
        say(f"approved  {each.sha}  {each.name!r} by {each.by!r} at {when}, {rounds} rounds answered")
        say(f"          for the table's version {each.table}")


def approve_study(home: Path, study: str, *, yes: bool, despite: bool) -> None:
    """Show a study and what it lets leave, ask, and approve it for the table as it is now."""
    asked = look_at_study(home, study)
    _show(asked)
    if (why := asked.hindrance(despite=despite)) is not None:
        raise ParameterError(f"Not approved: {why}")
    if not yes and not typer.confirm("Approve it?"):
        say("Not approved.")
        return
    read, version = asked.study, asked.data.version
    rows, sites = asked.shows_rows is not None, asked.shows_sites is not None
    detail = f"study {read.sha256} for the table's version {version}"
    detail += ", despite the difference" * rows + ", despite other sites" * sites
    detail += f"; doubts: {', '.join(doubt.kind for doubt in asked.doubts)}" * bool(asked.doubts)
    _log(home, "approved", detail)  # first: nothing is answered of which the log does not say who approved it
    asked.approvals.approve(read.text, name=read.name, by=user(), table=version, despite=rows or sites, fresh=True)
    say("Approved.", *_refused_still(home, read))


def write_page(home: Path, study: str, page: Path) -> None:
    """Write a study as a page to read; nothing is approved or asked."""
    asked = look_at_study(home, study)
    written = write_approval_page(asked, page)
    say(
        f"Page: {written} (opens in any browser, without a network)",
        f"Nothing was approved. To approve it: silograph site approve {asked.study.sha256}{folder_option(home)}",
    )


def _show(asked: AskedStudy) -> None:
    study, keys = asked.study, asked.keys()
    say(f"Study {study.name!r}, SHA-256 {study.sha256}", "", *_lines([Listing(study.text.decode())]), "")
    for section in (asked.difference(), asked.terms(), asked.leaves(), keys):
        say(*_lines(section), *([""] if section else []))
    say(*_lines(asked.table()), "", *_lines(asked.spends()), *(f"LOOK TWICE: {text}" for text in asked.twice()))


def _lines(section: Sequence[Said]) -> list[str]:
    lines = list[str]()
    for said in section:
        if isinstance(said, Listing):
            lines += [f"    {visible(line)}" for line in lines_of(said.text)]
        else:
            lines += [
                said if isinstance(said, str) else f"  {visible(said[0]):<13}{' ' * (len(said[0]) > 12)}{said[1]}"
            ]
    return lines


def _refused_still(home: Path, study: StudyFile) -> list[str]:
    """What an approval does not cure: keys that are not pinned here as the study names them."""
    other = [site for site, key in study.keys.items() if Pins(home).get(site) != key]
    if not study.settings.privacy.masked or not other:
        return []
    return [
        f"But this site refuses it (pins) until the keys of {', '.join(other)} are pinned as the study names them: see "
        "above what to do, before the run begins."
    ]


def revoke_study(home: Path, study: str) -> None:
    """Take an approval back."""
    sha = _sha_of(home, study)
    Approvals(home).revoke(sha)
    _log(home, "revoked", f"study {sha}")
    say(f"Revoked {sha}.")
    if read_site(home).approve_all:
        say("But site.toml says approve_all: the study is answered all the same. Set it to false to stop that.")


def reject_studies(home: Path, study: str | None) -> None:
    """Let one study wait no more, or all."""
    approvals = Approvals(home)
    waiting = [one.sha for one in approvals.pending()]
    shas = waiting if study is None else [_sha_of(home, study)]
    if unknown := [sha for sha in shas if sha not in waiting]:
        raise ParameterError(f"Study {unknown[0]} does not wait: there is nothing to reject.")
    for sha in shas:
        _log(home, "rejected", f"study {sha}")
    approvals.reject(*shas)
    say(f"Rejected {len(shas)}. A study that is asked for again waits again.")


def _sha_of(home: Path, study: str) -> str:
    return sha_of((Path(study) if Path(study).is_file() else Approvals(home).find(study)).read_bytes())


def _log(home: Path, what: str, detail: str) -> None:
    AuditLog(SiteFolder(home).audit_log).append({"what": what, "by": user(), "detail": detail}, durable=True)
