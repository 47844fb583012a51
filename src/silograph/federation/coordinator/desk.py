"""The server's desk: what the lead may ask of a federation's runs, from anywhere, and the answers.

The engine says who asks, and lets the lead alone in. What is asked is plain data: sizes are limited, the name of a run
must be one, and the name of a file one of those that the desk itself listed. Nothing else of the server is in reach.
"""

import base64
import math
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from silograph._util.documents import show
from silograph._util.files import make_folder, sha256_of
from silograph._util.locks import is_held
from silograph.errors import ParameterError, SilographError, SilosError
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.orders import give_order, read_order, read_state, read_times
from silograph.federation.coordinator.run import CoordinatorRun, new_run, open_run, run_folders
from silograph.federation.coordinator.survey import read_status
from silograph.federation.folders import FederationFolder
from silograph.federation.invitation import Invitation, read_invitation
from silograph.federation.members import is_revoked, notices
from silograph.federation.names import RUN_NAME, names_of
from silograph.federation.study_file import StudyFile, parse_study
from silograph.federation.versions import VERSION, check_together, difference

MOST_AT_ONCE = 500  # rounds, and events, in one answer
CHUNK = 250_000  # bytes of a file in one answer
FORGOTTEN = ".forgotten"
ENDED = ("done", "stopped", "abandoned")

Asked = Mapping[str, Any]
Answer = dict[str, Any]


class Desk:
    """The desk of one federation."""

    def __init__(
        self,
        federation: FederationFolder,
        *,
        keys: Callable[[], Mapping[str, str]],  # site → its key's fingerprint, once its request was signed
        connected: Callable[[], Mapping[str, float]],  # site → when the engine heard of it last
    ) -> None:
        self._federation, self._keys, self._connected = federation, keys, connected
        self._lock = threading.Lock()  # of what changes runs
        for left in federation.runs.glob(f".*{FORGOTTEN}"):  # of a removal that was killed
            shutil.rmtree(left, ignore_errors=True)

    def answer(self, asked: object) -> Answer:
        """The answer to the lead; where there is none, why, under `error`."""
        kinds: Mapping[str, Callable[[Asked], Answer]] = {
            "status": self._status,
            "begin": self._begin,
            "look": self._look,
            "files": self._files,
            "fetch": self._fetch,
            "abort": self._abort,
            "forget": self._forget,
        }
        try:
            if not isinstance(asked, Mapping) or not isinstance(ask := asked.get("ask"), str) or ask not in kinds:
                raise ParameterError(f"The server's silograph {VERSION} cannot be asked this. Use the same version.")
            check_together(f"The server has silograph {VERSION}", VERSION, "this machine", _text(asked, "version"))
            return {"now": time.time(), **kinds[ask](asked)}
        except SilographError as error:
            return {"error": str(error), "usage": isinstance(error, ParameterError)}

    # --- to look ----------------------------------------------------------------------------------------------------

    def _status(self, asked: Asked) -> Answer:
        invitation, keys, heard = self._about(), self._keys(), self._connected()
        surveyed = read_status(self._federation)["sites"]
        folders = run_folders(self._federation)
        found, seen = [_summary_in(folder) for folder in folders], _last_answers(folders)
        sites = []
        for site in invitation.sites:
            told = surveyed.get(site, {})
            times = [heard.get(site), told.get("at"), seen.get(site)]
            about = {"site": site, "key": keys.get(site), "heard": heard.get(site)}
            about |= {"revoked": site not in keys and is_revoked(self._federation, site)}
            about |= {"last_seen": max((at for at in times if at is not None), default=None)}
            sites.append(about | {name: told.get(name) for name in ("version", "data", "at")})
        said = notices(self._federation)
        return {"federation": invitation.name, "version": VERSION, "sites": sites, "runs": found, "notices": said}

    def _look(self, asked: Asked) -> Answer:
        """How a run is, and its rounds and events after those that are known already."""
        run = self._run(asked)
        after, skip = _number(asked, "after"), _number(asked, "skip")
        if asked.get("generation") != run.generation:  # it began anew
            skip = 0
        state = _summary(run)  # first: of a run that is done, all rounds are there
        with History.open_read(run.history) as history:
            rounds, events = history.rounds(skip), history.events(after)
        told = [{name: _finite(value) for name, value in asdict(one).items() if name != "record"} for one in rounds]
        return {
            **state,
            "generation": run.generation,
            "skipped": skip,
            "rounds": told[:MOST_AT_ONCE],
            "events": [asdict(event) for event in events[:MOST_AT_ONCE]],
            "times": asdict(read_times(run)),
        }

    def _files(self, asked: Asked) -> Answer:
        """The files of a run's results, with sizes and checksums."""
        run = self._run(asked)
        if read_state(run).name != "done":
            raise SilosError(f"{run.name}: is not done, so there is nothing to fetch yet.")
        copy = run.results / run.history.name
        if not copy.exists():
            with History.open_read(run.history) as history:
                history.copy(copy)
        files = [
            {"name": name, "size": path.stat().st_size, "sha256": sha256_of(path)}
            for name, path in _results(run).items()
        ]
        return {"files": files}

    def _fetch(self, asked: Asked) -> Answer:
        """A piece of one of these files."""
        run, name, start = self._run(asked), _text(asked, "file"), _number(asked, "start")
        path = _results(run).get(name)
        if path is None:
            raise ParameterError(f"{run.name}: has no result {show(name)}.")
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(CHUNK)
        return {"data": base64.b64encode(data).decode("ascii")}

    # --- to change --------------------------------------------------------------------------------------------------

    def _begin(self, asked: Asked) -> Answer:
        """Begin a run, or go on with it. Its name is the lead's choice: asked a second time, it is still one run."""
        name, source = _name(asked), _text(asked, "source")[:200]
        text = _text(asked, "study").encode("utf-8", "replace")
        with self._lock:
            if (self._federation.forgotten / name).exists():
                raise SilosError(f"{name}: was removed by `silograph federation forget`. Begin a new run.")
            if (folder := self._federation.run(name)).exists():
                run = open_run(folder)
                if run.study().text != text:
                    raise SilosError(f"{name}: is a run of another study. Begin a new one, in another --out.")
            else:
                run = self._new_run(name, text, names_of(asked.get("nodes"), "nodes", least=2), source)
            notes = self._version_notes(run)
            if read_order(run) is None or read_state(run).name in ("stopped", "abandoned"):
                give_order(run, wanted=True)  # last: who is told of an error, knows that nothing was begun
        return {"run": run.name, "notes": notes}

    def _new_run(self, name: str, text: bytes, nodes: tuple[str, ...], source: str) -> CoordinatorRun:
        study, keys = parse_study(text, source=source), self._keys()
        sites = sites_of(study, nodes, self._about(), source)
        if waiting := [site for site in sites if site not in keys]:
            raise SilosError(
                f"{', '.join(waiting)}: not approved yet. Approve each request: silograph federation approve "
                f"{waiting[0]}.request.zip; or leave the site out: sites = [...] in {source}."
            )
        return new_run(self._federation.runs, study, nodes, sites, name=name)

    def _abort(self, asked: Asked) -> Answer:
        """Give a run up; its processes notice within seconds."""
        run = self._run(asked)
        with self._lock:
            if read_state(run).name == "done":
                raise SilosError(f"{run.name}: is done already. Fetch its results, or remove it: federation forget.")
            give_order(run, wanted=False)
        return {"run": run.name}

    def _forget(self, asked: Asked) -> Answer:
        """Remove a run that nobody works on, with its results; its name stays taken."""
        run = self._run(asked)
        with self._lock:
            state = read_state(run)
            if state.name not in ENDED:
                raise SilosError(
                    f"{run.name}: is {state.name}. Give it up first: silograph federation abort {run.name}"
                )
            if is_held(run.lock) or is_held(run.supervisor_lock):
                raise SilosError(f"{run.name}: its processes have not ended yet. Try again in some seconds.")
            make_folder(self._federation.forgotten)
            (self._federation.forgotten / run.name).touch()
            aside = run.folder.with_name(f".{run.name}{FORGOTTEN}")
            run.folder.replace(aside)
            shutil.rmtree(aside)
        return {"run": run.name}

    # --- what is asked about ----------------------------------------------------------------------------------------

    def _about(self) -> Invitation:
        return read_invitation(self._federation.about)

    def _run(self, asked: Asked) -> CoordinatorRun:
        folder = self._federation.run(_name(asked))
        if not folder.exists():
            raise SilosError(f"{folder.name}: the server has no such run. See: silograph federation runs")
        return open_run(folder)

    def _version_notes(self, run: CoordinatorRun) -> list[str]:
        """Sites of the run that had another version when they were last asked how they are."""
        told = read_status(self._federation)["sites"]
        known = {site: told[site]["version"] for site in run.sites if site in told}
        return [text for site, theirs in known.items() if (text := difference(VERSION, site, theirs))]


def sites_of(study: StudyFile, nodes: Sequence[str], about: Invitation, source: str) -> tuple[str, ...]:
    """The sites of a study; raises unless sites and nodes are of this federation."""
    sites = study.sites or about.sites
    if strangers := [site for site in sites if site not in about.sites]:
        raise ParameterError(f"{source}, sites: {', '.join(strangers)} are not of this federation.")
    if about.nodes is not None and set(nodes) != set(about.nodes):
        raise SilosError(f"{source}: its nodes are not those to which the sites were invited.")
    return sites


def _summary(run: CoordinatorRun) -> Answer:
    with History.open_read(run.history) as history:
        last = history.last_round()
    state = read_state(run)
    return {
        "run": run.name,
        "study": run.title,
        "sites": list(run.sites),
        "state": state.name,
        "why": state.why,
        "phase": state.phase,
        "since": state.since,
        "begun": run.begun,
        "stage": None if last is None else last.stage,
        "round": None if last is None else last.round,
        "gap": None if last is None else _finite(last.gap),
        "last": None if last is None else last.finished_at,
    }


def _finite(value: Any) -> Any:
    """A value as JSON has it: an infinite gap, as of the first round, is none yet."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _summary_in(folder: Path) -> Answer:
    """The same of a folder, which may be damaged: no reason not to tell of the others."""
    try:
        return _summary(open_run(folder))
    except SilographError as error:
        nothing = dict.fromkeys(("phase", "since", "begun", "stage", "round", "gap", "last"))
        return {"run": folder.name, "study": "–", "sites": [], "state": "stopped", "why": str(error), **nothing}


def _last_answers(folders: list[Path]) -> dict[str, float]:
    """When each site last answered in any run."""
    seen: dict[str, float] = {}
    for folder in folders:
        with suppress(SilographError), History.open_read(open_run(folder).history) as history:
            for site in history.sites():
                if site.last_seen is not None:
                    seen[site.name] = max(site.last_seen, seen.get(site.name, 0.0))
    return seen


def _results(run: CoordinatorRun) -> dict[str, Path]:
    """The files of a run's results, by the names under which they are fetched."""
    found = (path for path in run.results.rglob("*") if not path.name.startswith("."))  # that is under way
    paths = [path for path in found if path.is_file() and not path.is_symlink()]
    return {path.relative_to(run.results).as_posix(): path for path in sorted(paths)}


def _name(asked: Asked) -> str:
    name = asked.get("run")
    if not (isinstance(name, str) and RUN_NAME.fullmatch(name)):  # it becomes a path
        raise ParameterError(f"run: expected 16 hexadecimal digits, got {show(name)}. See: silograph federation runs")
    return name


def _text(asked: Asked, key: str) -> str:
    value = asked.get(key)
    if not isinstance(value, str):
        raise ParameterError(f"{key}: expected text, got {show(value)}.")
    return value


def _number(asked: Asked, key: str) -> int:
    value = asked.get(key, 0)
    if type(value) is not int or not 0 <= value < 2**53:
        raise ParameterError(f"{key}: expected a whole number ≥ 0, got {show(value)}.")
    return value
