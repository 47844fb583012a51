"""What `silograph site status` and `silograph site doctor` show."""

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer

from silograph._util.terminal import visible
from silograph.cli.output import BAD_INPUT
from silograph.cli.site.account import say
from silograph.cli.site.budget import budget_record, read_lines, summary
from silograph.errors import SilographError
from silograph.federation.certificates import certificate_ends, site_warnings
from silograph.federation.folders import SiteFolder
from silograph.federation.invitation import read_invitation
from silograph.federation.nvflare.hosting import running
from silograph.federation.reach import Reached, reach
from silograph.federation.site.address import RENEW, address_of, used_invitation
from silograph.federation.site.checks import Finding, diagnose, worst
from silograph.federation.site.contact import refusal, shown
from silograph.federation.site.data import tables_of
from silograph.federation.site.notices import name_of
from silograph.federation.site.settings import SiteSettings, read_site
from silograph.federation.site.standing import Standing, plain_standing, standing_of
from silograph.federation.site.unreadable import known_problem

WIDTH = 13  # of the first column
COLOURS = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "wrong": typer.colors.RED}


def show_status(home: Path, *, as_json: bool) -> None:
    """Print how the site stands, for people or for machines."""
    settings, host = read_site(home), (running(home) or {}).get("host")
    standing, folder = standing_of(home, hosted=host is not None), SiteFolder(home)
    connected = standing.connection is not None and standing.connection.state == "connected"
    # Only where nobody knows it from the connection itself
    reached = None if connected else reach(used_invitation(folder), folder.kit)
    if as_json:
        typer.echo(json.dumps(_record(home, settings, host, standing, reached), indent=2))
        return
    for name, lines in _lines(home, settings, host, standing, reached):
        for number, line in enumerate(lines):
            say(f"{name if not number else '':<{WIDTH}}{line}")


def _lines(
    home: Path, settings: SiteSettings, host: int | None, standing: Standing, reached: Reached | None
) -> Iterator[tuple[str, list[str]]]:
    folder, known = SiteFolder(home), standing.connection
    yield "site", [f"{settings.name} of the federation {settings.federation}, in {home}"]
    yield "connection", list(_connection(folder, host, standing, reached))
    if known is not None and known.version is not None:
        versions = f"silograph {known.version}" + f", NVFlare {known.nvflare}" * bool(known.nvflare)
        yield "server", [f"{versions}, as it said at {shown(known.told or '')}"]
    run = standing.run
    yield "last run", ["none" if run is None else f"{run.run}, {run.state} at {shown(run.when)}; study {run.study}"]
    if (last := standing.refusal) is not None:
        answered = "" if last.stands else "; the study was answered since"
        yield "refused", [f"{last.code}, run {last.run} at {shown(last.when)}: {last.detail}{answered}"]
    waiting = [
        f"{name_of(study.path)!r}, {study.sha}, asked for by {study.asked_by!r} at {shown(study.when)}"
        for study in standing.waiting
    ]
    cure = ["Read, then approve or reject: silograph site approve HASH"] if waiting else []
    yield "waiting", [*(waiting or ["no study"]), *cure]
    yield "approved", [f"{one.name!r}, {one.sha}, by {one.by!r}" for one in standing.approved] or ["no study"]
    yield "budget", _budget(home, settings)
    ends = f"ends on {certificate_ends(folder.kit.certificate):%Y-%m-%d}"
    yield "certificate", [ends, *site_warnings(home)]
    problem = known_problem(folder)
    yield "table", [_table(home, settings), *([] if problem is None else [f"CANNOT BE READ: {problem}"])]
    versions = f"silograph {version('silograph')}, NVFlare {version('nvflare')}, Python {platform.python_version()}"
    yield "here", [versions]


def _connection(folder: SiteFolder, host: int | None, standing: Standing, reached: Reached | None) -> Iterator[str]:
    known, server = standing.connection, address_of(used_invitation(folder))
    said = address_of(read_invitation(folder.invitation))
    if said != server:
        yield f"THE KIT CONNECTS TO {server}, THE INVITATION SAYS {said}. If the latter is right: {RENEW}"
    if known is not None and known.state == "connected":
        yield f"connected to {server} since {shown(known.since)}"
        return
    faulty = reached is not None and reached.fault is not None
    if host is None:
        yield "not connected: the site is not running. Start it: silograph site start"
    elif known is None or known.state == "connecting":
        yield f"connecting to {server}" + ("" if known is None else f" since {shown(known.since)}")
    elif faulty or standing.refused is None:
        yield f"the server {server} is away since {shown(known.since)}"
    else:
        yield f"not connected to {server} since {shown(known.since)}"
    if reached is not None and reached.fault is not None:
        yield f"{reached.fault}."
    elif standing.refused is not None:
        yield refusal(standing.refused) + " (When it was tried last.)" * (host is None)
    elif known is not None and known.why is not None:
        yield f"{known.why}."
    else:
        yield f"{server} can be reached. Whether it lets this site in is not known yet."


def _budget(home: Path, settings: SiteSettings) -> list[str]:
    try:
        return summary([line.opening for line in read_lines(home)], settings)
    except SilographError as error:  # the rest is to be seen all the more
        return [str(error)]


def _table(home: Path, settings: SiteSettings) -> str:
    try:
        tables = tables_of(settings, home)
        about = [table.path.stat() for table in tables]
    except (SilographError, OSError) as error:
        return str(error)
    changed = datetime.fromtimestamp(max(one.st_mtime for one in about), UTC).isoformat()
    what = str(tables[0].path) if len(tables) == 1 else f"{len(tables)} tables of {settings.data_shown}"
    size = sum(one.st_size for one in about)
    return f"{what}: {size:,} bytes, changed at {shown(changed)}; `silograph site doctor` reads all of it"


def _record(
    home: Path, settings: SiteSettings, host: int | None, standing: Standing, reached: Reached | None
) -> dict[str, Any]:
    try:
        budget = budget_record(read_lines(home), settings)
    except SilographError as error:
        budget = {"problem": str(error)}
    return {
        "format": 1,
        "site": settings.name,
        "federation": settings.federation,
        "host": host,
        **plain_standing(standing),
        "fault": None if reached is None or reached.fault is None else asdict(reached.fault),
        "unreadable": known_problem(SiteFolder(home)),
        "budget": budget,
        "certificate_ends": certificate_ends(SiteFolder(home).kit.certificate).isoformat(),
        "versions": {name: version(name) for name in ("silograph", "nvflare")},
    }


def show_diagnosis(home: Path, *, quick: bool, as_json: bool) -> None:
    """Print what the checks find; exit code 1 if anything is wrong."""
    findings = diagnose(home, host=(running(home) or {}).get("host"), quick=quick)
    state = worst(findings)
    if as_json:
        typer.echo(json.dumps({"format": 1, "state": state, "findings": [asdict(one) for one in findings]}, indent=2))
    else:
        for finding in findings:
            _show(finding)
        count = {kind: sum(one.state == kind for one in findings) for kind in COLOURS}
        say(f"{count['ok']} ok, {count['warning']} to look at, {count['wrong']} wrong.")
    if state == "wrong":
        raise typer.Exit(BAD_INPUT)


def _show(finding: Finding) -> None:
    typer.secho(f"{finding.state:<9}", fg=COLOURS[finding.state], nl=False)
    typer.echo(f"{finding.check:<15}{visible(finding.found)}")
    if finding.cure:
        typer.echo(f"{'':<24}→ {visible(finding.cure)}")
