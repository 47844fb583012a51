"""How a site stands, for its own people: what is known without asking anybody, and quickly."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silograph._util.documents import parse_json
from silograph.errors import SilographError
from silograph.federation.folders import SiteFolder
from silograph.federation.names import RUN_ID
from silograph.federation.site.approvals import Approval, Approvals, Pending
from silograph.federation.site.audit import entries
from silograph.federation.site.contact import Connection, read_connection
from silograph.federation.site.notices import ROUTINE, is_held, study_called
from silograph.federation.site.pins import Pins
from silograph.federation.site.state import ABOUT
from silograph.federation.study_file import parse_study
from silograph.runs.layout import RECORD

LAST_ENTRIES = 1000  # of the audit log, among which the last refusal is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The run that this site answered last."""

    run: str
    study: str  # its name, where it is known, and SHA-256
    state: str  # "begun", "ended" or "stopped"
    when: str  # UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRefusal:
    """The last request that this site refused for a reason that people can mend."""

    run: str
    study: str  # SHA-256, where it is known
    code: str
    detail: str  # which did not leave
    when: str  # UTC
    stands: bool  # nothing of that study was answered since


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that the site's folder tells."""

    connection: Connection | None
    refused: str | None  # why the server did not let the site in when it was tried last, in its words
    run: LastRun | None
    refusal: LastRefusal | None
    waiting: tuple[Pending, ...]
    approved: tuple[Approval, ...]


def standing_of(home: Path, *, hosted: bool) -> Standing:
    """How the site in this folder stands; without a host, it is not connected, whatever its last host wrote."""
    folder = SiteFolder(home.resolve())
    approvals, known = Approvals(folder.path), read_connection(folder.connection)
    return Standing(
        connection=known if hosted else None,
        refused=None if known is None else known.refused,
        run=_last_run(folder),
        refusal=last_refusal(folder),
        waiting=tuple(approvals.pending()),
        approved=tuple(approvals.approved()),
    )


def last_refusal(folder: SiteFolder) -> LastRefusal | None:
    """The last refusal in the end of the audit log."""
    recent = list(entries(folder.audit_log, last=LAST_ENTRIES))
    refused = [
        (at, one) for at, one in enumerate(recent) if one.get("what") == "refused" and one.get("code") not in ROUTINE
    ]
    if not refused:
        return None
    at, entry = refused[-1]
    study = str(entry.get("study") or "")
    since = (one for one in recent[at:] if one.get("what") == "answered")
    told = {name: str(entry.get(name) or "") for name in ("run", "code", "detail")}
    answered = any(study and one.get("study") == study for one in since)
    return LastRefusal(**told, study=study, when=str(entry.get("time")), stands=not answered)


def unpinned_keys(folder: SiteFolder) -> dict[str, str]:
    """Of studies that wait or are approved: which site's key is not pinned here as a study with masks names it."""
    pins, approvals = Pins(folder.path), Approvals(folder.path)
    believed, found = pins.all(), dict[str, str]()
    texts = [study.path for study in approvals.pending()]
    texts += [folder.approved / f"{one.sha}.toml" for one in approvals.approved()]
    for path in texts:
        try:
            study = parse_study(path.read_bytes(), source=path.name)
        except (OSError, SilographError):
            continue  # it cannot be answered
        if study.settings.privacy.masked:
            found |= {site: key for site, key in study.keys.items() if believed.get(site) != key}
    return found


def _last_run(folder: SiteFolder) -> LastRun | None:
    places = [entry for part in (folder.answered, folder.state, folder.results) for entry in _runs_in(part)]
    if not places:
        return None
    last = max(places, key=_changed)
    run, ended = last.name, folder.results / last.name
    state = "begun" if is_held(folder, run) else "ended" if ended.exists() else "stopped"
    when = datetime.fromtimestamp(_changed(ended if state == "ended" else last), UTC)
    return LastRun(run=run, study=_study_of(folder, run), state=state, when=when.isoformat(timespec="seconds"))


def _changed(entry: Path) -> float:
    """When a run's folder was written: of results, as they say it, for pages and figures come into them later."""
    try:
        return datetime.fromisoformat(parse_json((entry / RECORD).read_bytes())["created"]).timestamp()
    except (OSError, ValueError, KeyError, TypeError):
        return entry.stat().st_mtime


def _runs_in(part: Path) -> list[Path]:
    return [entry for entry in part.iterdir() if RUN_ID.fullmatch(entry.name)] if part.exists() else []


def _study_of(folder: SiteFolder, run: str) -> str:
    for path in (folder.state / run / ABOUT, folder.results / run / ABOUT):
        try:
            about: dict[str, Any] = parse_json(path.read_bytes())
        except (OSError, ValueError):
            continue
        return study_called(folder, str(about.get("sha256") or about.get("study")))
    return "unknown"


def plain_standing(standing: Standing) -> dict[str, Any]:
    """The same for machines."""
    return dict(json.loads(json.dumps(asdict(standing), default=str)))
