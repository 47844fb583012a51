"""The commands `silograph federation status` and `runs`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from silograph._util.terminal import visible
from silograph.cli.federation.asking import desk
from silograph.cli.output import span
from silograph.federation.coordinator.supervisor import FRESH_SECONDS, POLL_SECONDS, ServerAwayError
from silograph.federation.fingerprints import shown_fingerprint
from silograph.federation.folders import FederationFolder
from silograph.federation.members import notices
from silograph.federation.nvflare.authority import read_federation, site_keys
from silograph.federation.versions import difference

SURVEY_SECONDS = 60.0  # for the sites to say how they are
LONG_SECONDS = 3.0  # after which it is said what takes so long
DATA = {
    "restored": "its folder was restored from an older copy; there: silograph site restored",
    "reading": "being read in full; ask again",
}


def status_data(folder: Path, *, ask: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """All that is known, as plain data; asks the sites first, if `ask`."""
    try:
        with desk(folder) as session:
            return described(folder, ask_status(session, ask=ask, say=say))
    except ServerAwayError as error:
        return described(folder, None, away=str(error))


def ask_status(session: Any, *, ask: bool, say: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """What the server's desk says, once the sites were asked, if `ask`; who waits long is told what for."""
    found: dict[str, Any] = session.ask("status")
    connected = [site["site"] for site in found["sites"] if _is_connected(site, found["now"])]
    if ask and connected:
        _ask_sites(session, connected, say)
        found = session.ask("status")
    return found


def described(folder: Path, found: dict[str, Any] | None, *, away: str = "") -> dict[str, Any]:
    """The same as plain data for people and programs; what is known without the server, where nothing was `found`."""
    about = read_federation(folder)
    if found is None:
        keys = site_keys(folder) if FederationFolder(folder).certificates.exists() else {}
        unknown = dict.fromkeys(("heard", "last_seen", "version", "data", "at", "revoked"))
        told = [{"site": site, "key": keys.get(site), **unknown} for site in about.sites]
        found = {
            "federation": about.name,
            "now": time.time(),
            "version": None,
            "sites": told,
            "runs": [],
            "notices": [],
        }
    # Without the server and the folder sites/, nobody knows who has joined
    known = not away or FederationFolder(folder).certificates.exists()
    now, version = found["now"], found["version"]
    sites: list[dict[str, Any]] = [
        {
            "site": site["site"],
            "joined": None if site["key"] is None and not known else site["key"] is not None,
            "revoked": site["revoked"],
            "key": site["key"],
            "connected": None if away else _is_connected(site, now),
            "last_seen": site["last_seen"],
            "version": site["version"],
            "data": site["data"],
            "told": site["at"],  # when it told the last two
        }
        for site in found["sites"]
    ]
    own = notices(FederationFolder(folder))
    warnings = [
        *dict.fromkeys((*found["notices"], *own)),  # of the server's folder, and of this one
        *(text for site in sites if site["version"] and (text := difference(version, site["site"], site["version"]))),
    ]
    server = {"address": f"{about.server}:{about.port}", "answers": not away, "why": away, "version": version}
    return {
        "federation": found["federation"],
        "server": server,
        "now": now,
        "sites": sites,
        "runs": found["runs"],
        "warnings": warnings,
    }


def joined(site: dict[str, Any]) -> str:
    """Whether a site has joined, for people."""
    if site["joined"] is None:
        return "not known"
    if site["joined"]:
        return "yes"
    return "no: its key was revoked" if site["revoked"] else "no: its request was not approved yet"


def _is_connected(site: dict[str, Any], now: float) -> bool:
    """Heard of lately, as a run takes it; the server's own list keeps those that left for a while."""
    return site["heard"] is not None and now - site["heard"] <= FRESH_SECONDS


def _ask_sites(session: Any, sites: list[str], say: Callable[[str], None]) -> None:
    """Let a small job ask every connected site for its version and whether its data are ready."""
    began, job, told = time.monotonic(), session.submit([], sites), False
    while session.state(job) != "ended":
        waited = time.monotonic() - began
        if waited > SURVEY_SECONDS:
            session.abort(job)
            say(f"Not all sites have answered within {SURVEY_SECONDS:g} s: what they told earlier is shown as such.")
            return
        if waited > LONG_SECONDS and not told:
            told = True
            say(f"Asking {', '.join(sites)}, for {SURVEY_SECONDS:g} s at most. (--quick does not ask.)")
        time.sleep(POLL_SECONDS)


def status_tables(data: dict[str, Any]) -> Group:
    """The same for people."""
    server, now = data["server"], data["now"]
    answers = f"answers (silograph {server['version']})" if server["answers"] else "does not answer"
    title = f"{data['federation']}: the server at {server['address']} {answers}"
    table = Table(title=Text(visible(title)), title_justify="left")
    for name in ("site", "joined", "connected", "last seen", "version", "data"):
        table.add_column(name)
    for site in data["sites"]:
        old = site["told"] is not None and now - site["told"] > SURVEY_SECONDS
        when = f" ({_ago(site['told'], now)})" if old else ""
        cells = (
            site["site"],
            joined(site),
            "not known" if site["connected"] is None else "yes" if site["connected"] else "no",
            "not known" if site["connected"] is None and not site["last_seen"] else _ago(site["last_seen"], now),
            f"{site['version'] or '–'}{when}",
            f"{DATA.get(site['data'], site['data']) or '–'}{when}",
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    keys = Table(title=Text("Keys of the sites, which pin each other's: silograph site pin"), title_justify="left")
    for name in ("site", "fingerprint"):
        keys.add_column(name, overflow="fold")
    for site in data["sites"]:
        keys.add_row(Text(visible(site["site"])), Text(shown_fingerprint(site["key"]) if site["key"] else "–"))
    return Group(table, keys, *([runs_table(data["runs"], now)] if data["runs"] else []))


def runs_table(runs: list[dict[str, Any]], now: float) -> Table:
    """All runs that the server has, for people."""
    table = Table(title=Text("Runs"), title_justify="left")
    for name in ("run", "study", "sites", "begun", "state", "round", "gap", "last round"):
        table.add_column(name, overflow="fold")
    for run in runs:
        at = "–" if run["round"] is None else f"{run['stage']} {run['round']}"
        gap = "–" if run["gap"] is None else f"{run['gap']:.1e}"
        about = (run["run"], run["study"], ", ".join(run["sites"]), _ago(run["begun"], now), _state(run, now), at, gap)
        table.add_row(*(Text(visible(cell)) for cell in (*about, _ago(run["last"], now))))
    return table


def _state(run: dict[str, Any], now: float) -> str:
    """How it is, and why, and for how long."""
    why = f" for {run['why']}" if run["state"] == "waiting" else f": {run['why']}" if run["state"] == "stopped" else ""
    long = f" ({span(now - run['since'])})" if run["since"] and run["state"] != "done" else ""
    return f"{run['state']}{why}{long}"


def _ago(moment: float | None, now: float) -> str:
    return "never" if not moment else f"{span(now - moment)} ago"
