"""The command `silograph federation status`."""

import time
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from silograph._util.terminal import visible
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun, list_runs
from silograph.federation.coordinator.supervisor import FRESH_SECONDS, POLL_SECONDS, ServerAwayError
from silograph.federation.coordinator.survey import read_status
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.folders import FederationFolder
from silograph.federation.nvflare.authority import read_federation, site_keys
from silograph.federation.nvflare.session import ServerSession

SURVEY_SECONDS = 60.0  # for the sites to say how they are
DATA = {"restored": "its folder was restored from an older copy; there: silograph site restored"}


def status_data(folder: Path, *, ask: bool) -> dict[str, Any]:
    """All that is known, as plain data; asks the sites first, if `ask`."""
    federation, invitation = FederationFolder(folder), read_federation(folder)
    connected: dict[str, float] | None = None
    with ServerSession(folder) as session:
        try:
            connected = _connected(session)
            if ask and connected:
                _ask_sites(session, [site for site in invitation.sites if site in connected])
                connected = _connected(session)
        except ServerAwayError:
            pass
    replies, keys = read_status(federation)["sites"], site_keys(folder)
    sites = [
        {
            "site": site,
            "joined": site in keys,
            "key": keys.get(site),
            "connected": connected is not None and site in connected,
            "last_seen": (connected or {}).get(site) or replies.get(site, {}).get("at"),
            "version": replies.get(site, {}).get("version"),
            "data": replies.get(site, {}).get("data"),
        }
        for site in invitation.sites
    ]
    server = {"address": f"{invitation.server}:{invitation.port}", "answers": connected is not None}
    runs = [_run_data(run) for run in list_runs(federation)]
    return {"federation": invitation.name, "server": server, "sites": sites, "runs": runs}


def _connected(session: ServerSession) -> dict[str, float]:
    """The sites heard of lately, as a run takes it; the server's own list keeps those that left for a while."""
    return {site: heard for site, heard in session.connected().items() if time.time() - heard <= FRESH_SECONDS}


def _ask_sites(session: ServerSession, sites: list[str]) -> None:
    """Let a small job ask every connected site for its version and whether its data are ready."""
    job = session.submit([], sites)
    deadline = time.monotonic() + SURVEY_SECONDS
    while session.state(job) != "ended":
        if time.monotonic() > deadline:
            session.abort(job)
            return
        time.sleep(POLL_SECONDS)


def _run_data(run: CoordinatorRun) -> dict[str, Any]:
    outcome = run.outcome()
    with History.open_read(run.history) as history:
        last = history.last_round()
    return {
        "run": run.name,
        "study": run.study().name,
        "sites": list(run.sites),
        "state": "unfinished" if outcome is None else outcome.ended,
        "stage": None if last is None else last.stage,
        "round": None if last is None else last.round,
        "gap": None if last is None else last.gap,
        "last": None if last is None else last.finished_at,
    }


def status_tables(data: dict[str, Any]) -> Group:
    """The same for people."""
    server = data["server"]
    state = "answers" if server["answers"] else "does not answer; start it: silograph federation start"
    table = Table(title=Text(f"{data['federation']}: the server at {server['address']} {state}"), title_justify="left")
    for name in ("site", "joined", "connected", "last seen", "version", "data"):
        table.add_column(name)
    for site in data["sites"]:
        cells = (
            site["site"],
            "yes" if site["joined"] else "no: its request was not approved yet",
            "yes" if site["connected"] else "no",
            _ago(site["last_seen"]),
            site["version"] or "–",
            DATA.get(site["data"], site["data"]) or "–",
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    keys = Table(title=Text("Keys of the sites, which pin each other's: silograph site pin"), title_justify="left")
    for name in ("site", "fingerprint"):
        keys.add_column(name, overflow="fold")
    for site in data["sites"]:
        keys.add_row(Text(visible(site["site"])), Text(shown_fingerprint(site["key"]) if site["key"] else "–"))
    runs = Table(title=Text("Runs"), title_justify="left")
    for name in ("run", "study", "sites", "state", "round", "gap", "last"):
        runs.add_column(name)
    for run in data["runs"]:
        at = "–" if run["round"] is None else f"{run['stage']} {run['round']}"
        gap = "–" if run["gap"] is None else f"{run['gap']:.1e}"
        about = (run["run"], run["study"], ", ".join(run["sites"]), run["state"], at, gap, _ago(run["last"]))
        runs.add_row(*(Text(visible(cell)) for cell in about))
    return Group(table, keys, runs) if data["runs"] else Group(table, keys)


def _ago(moment: float | None) -> str:
    if not moment:
        return "never"
    seconds = max(0.0, time.time() - moment)
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
