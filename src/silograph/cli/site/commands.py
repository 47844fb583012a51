"""The commands `silograph site …`, for a site's engineer."""

import getpass
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from silograph.cli.folders import Systemd, site_folder
from silograph.cli.output import PIPE_WIDTH, guard, need_nvflare
from silograph.errors import SilographError
from silograph.federation.folders import SiteFolder

if TYPE_CHECKING:
    from silograph.federation.site.approvals import Approvals

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Take part in a federation: your signals stay here. See [bold]silograph federation[/bold] for the other side.",
)
Folder = Annotated[Path | None, typer.Option(help="The site's folder. Default: this folder, or the only one below it.")]


@app.command(
    help="Make a key for this site and a request to join. Only the request leaves; send it to the coordinator."
)
@guard()
def request(
    invitation: Annotated[Path, typer.Argument(help="The invitation from the coordinator, NAME.invite.")],
    site: Annotated[str, typer.Option(help="Which of the invited sites this is.")],
    folder: Annotated[Path | None, typer.Option(help="Folder to make for this site. Default: the site's name.")] = None,
) -> None:
    """Make key and request."""
    from silograph.federation.invitation import read_invitation

    need_nvflare()
    from silograph.federation.nvflare.kits import make_request

    invited = read_invitation(invitation)
    home = folder or Path(site)
    made = make_request(home, invited, site)
    _say(
        f"Federation {invited.name}, server {invited.server}:{invited.port}, sites {', '.join(invited.sites)}.",
        "Root certificate (compare it with what the coordinator tells you by telephone):",
        f"  {invited.shown_fingerprint()}",
        f"The private key is in {SiteFolder(home).key}/ and stays there.",
        f"Send to the coordinator: {_near(made)}",
        f"Then, with what comes back: silograph site join {site}.signed.zip --data YOUR-TABLE.csv{_option(home, site)}",
    )


JOIN_HELP = """Install what the coordinator signed, check the data, and say what will and will not leave this site.

The table has one row per sample and one column per node (CSV, TSV, .1D, .npy, .npz or Parquet). It is not copied: its
path is kept in site.toml, this site's own file, together with the limits. Both never leave.
"""


@app.command(help=JOIN_HELP)
@guard()
def join(
    signed: Annotated[Path, typer.Argument(help="SITE.signed.zip from the coordinator.")],
    data: Annotated[Path, typer.Option(help="This site's table of signals.")],
    folder: Folder = None,
    drop: Annotated[list[str] | None, typer.Option(help="Column that is not a node; may be repeated.")] = None,
    key: Annotated[str | None, typer.Option(help="Which array of an .npz file holds the signals.")] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row names the nodes.")
    ] = None,
    min_samples: Annotated[
        int | None, typer.Option(help="Least number of samples to take part with. Default: as many as nodes, and 20.")
    ] = None,
    max_rounds: Annotated[int, typer.Option(help="Most rounds that this site answers for one approved study.")] = 1000,
    keep_graph: Annotated[
        bool, typer.Option("--keep-graph", help="Never send this site's graph, even if a study asks for it.")
    ] = False,
    keep_numbers: Annotated[
        bool,
        typer.Option("--keep-numbers", help="Never tell this site's own numbers of samples, edges and contribution."),
    ] = False,
    approve_all: Annotated[
        bool, typer.Option("--approve-all", help="Answer every study within the limits, without approving it by hand.")
    ] = False,
) -> None:
    """Join."""
    need_nvflare()
    from silograph.cli.site.join import join_federation

    home = site_folder(folder, named=Path(signed.name.removesuffix(".signed.zip")))
    limits = {
        "drop": tuple(drop or ()),
        "key": key,
        "header": header,
        "min_samples": min_samples,
        "max_rounds": max_rounds,
        "share_graph": not keep_graph,
        "report": not keep_numbers,
        "approve_all": approve_all,
    }
    _say(*join_federation(home, signed, data, limits))


@app.command(help="Connect to the federation and answer approved studies, until Ctrl-C. Restarts what dies.")
@guard("the site has ended; start it again with: silograph site start")
def start(folder: Folder = None, systemd: Systemd = False) -> None:
    """Host the site."""
    need_nvflare()
    from silograph.federation.nvflare.hosting import host_site
    from silograph.federation.nvflare.systemd import systemd_unit
    from silograph.federation.site.settings import read_site

    home = site_folder(folder)
    read_site(home)
    if systemd:
        typer.echo(systemd_unit("site", home))
    else:
        host_site(home, say=typer.echo)


APPROVE_HELP = """Approve a study, so that this site answers its rounds.

A study is known by the SHA-256 of its file: a file changed by one byte is another study. Without an argument, shows the
studies that were asked for and wait, and those approved.
"""


@app.command(help=APPROVE_HELP)
@guard()
def approve(
    study: Annotated[
        str | None, typer.Argument(help="A study file, or the first digits of the hash of one that waits.")
    ] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Take an approval back; it holds from the next round.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    folder: Folder = None,
) -> None:
    """Approve, revoke, or list."""
    from silograph.federation.site.approvals import Approvals

    home = site_folder(folder)
    approvals = Approvals(home)
    if study is None:
        _list_studies(approvals)
    elif revoke:
        _revoke(home, approvals, study)
    else:
        _approve(home, approvals, study, yes=yes)


@app.command(help="The audit log: who asked what, when, what left this site, how many bytes.")
@guard()
def log(
    folder: Folder = None,
    last: Annotated[int, typer.Option("--last", "-n", help="How many entries; 0: all.")] = 20,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check that no entry was altered, removed or put in; exit code 1 if one was."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print entries as JSON, one per line.")] = False,
) -> None:
    """Show or verify the log."""
    from silograph.federation.site.audit import entries
    from silograph.federation.site.audit import verify as check

    path = SiteFolder(site_folder(folder)).audit_log
    if verify:
        verdict = check(path)
        if verdict.problem is not None:
            raise SilographError(f"{path}: {verdict.problem}")
        torn = f", {verdict.torn} incomplete lines left by crashes" if verdict.torn else ""
        _say(f"{path}: {verdict.entries} entries, unbroken{torn}.")
        return
    found = entries(path, last=last or None)
    if as_json:
        for entry in found:
            typer.echo(json.dumps(entry, ensure_ascii=False))
    else:
        Console(width=None if Console().is_terminal else PIPE_WIDTH).print(log_table(list(found)))


def log_table(entries: list[dict[str, Any]]) -> Table:
    """The log for people."""
    table = Table(title=None)
    for name in ("time (UTC)", "what", "who", "request", "left this site", "bytes"):
        table.add_column(name, justify="right" if name == "bytes" else "left", overflow="fold")
    for entry in entries:
        request = " ".join(str(entry[name]) for name in ("kind", "stage", "step", "round") if name in entry)
        left = entry.get("left") or (f"nothing: {entry['code']}" if "code" in entry else entry.get("detail", ""))
        cells = (
            str(entry["time"])[:19].replace("T", " "),
            str(entry.get("what", "")),
            str(entry.get("from") or entry.get("by") or ""),
            request,
            str(left) if entry.get("what") != "asked" else "",
            str(entry.get("bytes_sent", entry.get("bytes", ""))),
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _list_studies(approvals: "Approvals") -> None:
    waiting, approved = approvals.pending(), approvals.approved()
    if not waiting and not approved:
        _say("No study waits for approval, and none is approved.")
    for one in waiting:
        _say(f"waits     {one.sha}  asked by {one.asked_by!r} at {one.when}")
        _say(f"          read it: {one.path}")
        _say(f"          approve: silograph site approve {one.sha[:12]}")
    for each in approved:
        _say(f"approved  {each.sha}  {each.name!r} by {each.by!r} at {each.when}, {each.rounds_used} rounds answered")


def _approve(home: Path, approvals: "Approvals", study: str, *, yes: bool) -> None:
    from silograph.federation.site.settings import read_site
    from silograph.federation.study_file import parse_study

    path = Path(study)
    if not path.is_file():
        sha = approvals.find(study)
        known = {one.sha: one.path for one in approvals.pending()}
        if sha not in known:
            _approve_anew(home, approvals, sha, yes=yes)
            return
        path = known[sha]
    read = parse_study(path.read_bytes(), source=str(path))
    settings = read_site(home)
    shares, reports = read.share_graphs and settings.share_graph, read.settings.report and settings.report
    _say(
        f"Study {read.name!r}, SHA-256 {read.sha256}",
        f"  method {read.settings.method}; rounds are answered up to {settings.max_rounds}",
        f"  leaves: in each round, this site's terms of the sums (the threat model in the docs says what they tell)"
        f"{', its own numbers' if reports else ''}{', at the end its graph' if shares else ''}",
        f"  stays:  your table{'' if reports else ', your own numbers'}{'' if shares else ', your graph'}",
    )
    if not yes and not typer.confirm("Approve it?"):
        _say("Not approved.")
        return
    _note_approval(home, approvals, read.sha256, read.name)


def _approve_anew(home: Path, approvals: "Approvals", sha: str, *, yes: bool) -> None:
    """A study whose rounds are used up: the same study, counted from nothing."""
    before = next(one for one in approvals.approved() if one.sha == sha)
    _say(f"Study {before.name!r} is approved already; {before.rounds_used} of its rounds were answered.")
    if yes or typer.confirm("Approve it anew, and count its rounds from nothing?"):
        _note_approval(home, approvals, sha, before.name)


def _note_approval(home: Path, approvals: "Approvals", sha: str, name: str) -> None:
    from silograph.federation.site.audit import AuditLog

    approvals.approve(sha, name=name, by=_user(), fresh=True)
    entry = {"what": "approved", "by": _user(), "detail": f"study {sha}"}
    AuditLog(SiteFolder(home).audit_log).append(entry, durable=True)
    _say("Approved.")


def _user() -> str:
    """Who this process runs as; the environment counts only where the system does not know users."""
    try:
        import pwd
    except ImportError:
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in many containers
        return f"user {os.getuid()}"


def _revoke(home: Path, approvals: "Approvals", study: str) -> None:
    from silograph.federation.site.approvals import sha_of
    from silograph.federation.site.audit import AuditLog

    path = Path(study)
    sha = sha_of(path.read_bytes()) if path.is_file() else approvals.find(study)
    approvals.revoke(sha)
    entry = {"what": "revoked", "by": _user(), "detail": f"study {sha}"}
    AuditLog(SiteFolder(home).audit_log).append(entry, durable=True)
    _say(f"Revoked {sha}.")


def _say(*lines: str) -> None:
    for line in lines:
        typer.echo(line)


def _near(path: Path) -> Path:
    """The path as one would type it from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _option(home: Path, site: str) -> str:
    return "" if home == Path(site) else f" --folder {home}"
