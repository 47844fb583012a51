"""What a site's host tells of studies: that one waits for approval, that a run began, ended or stopped.

Seen in the site's own folder, which the processes of runs write: `pending/` and the audit log. That a study waits is
also told to a program of the site's people, if site.toml names one (`on_pending`), once: `told.json` says of which.
"""

import json
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from silograph._util import locks
from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph.errors import SilographError
from silograph.federation.folders import SiteFolder
from silograph.federation.names import RUN_ID
from silograph.federation.site.approvals import Approvals, Pending
from silograph.federation.site.audit import LONGEST_LINE
from silograph.federation.site.on_pending import call
from silograph.federation.site.settings import read_site
from silograph.federation.site.state import LOCK
from silograph.federation.site.unreadable import known_problem
from silograph.federation.study_file import parse_study

Say = Callable[[str], None]
ROUTINE = ("unapproved", "busy", "kept")  # refusals that are told in other words, or are none


class Waiting:
    """Tells of studies that wait."""

    def __init__(self, folder: SiteFolder, say: Say) -> None:
        self._folder, self._say = folder, say
        self._said = dict[str, str]()  # SHA-256 → since when it waits, of those told on the terminal
        self._seen: int | None = None  # when the folder had changed

    def look(self) -> None:
        """Tell of those that are new."""
        changed = self._folder.pending.stat().st_mtime_ns if self._folder.pending.exists() else 0
        if changed == self._seen:
            return
        studies = Approvals(self._folder.path).pending()
        for study in studies:
            if self._said.get(study.sha) != study.when:
                self._tell(study)
                self._said[study.sha] = study.when
            self._call(study, studies)
        self._said = {study.sha: study.when for study in studies}
        self._seen = changed  # last: what failed is tried again

    def _tell(self, study: Pending) -> None:
        folder = shlex.quote(str(self._folder.path))
        self._say(
            f"The study {name_of(study.path)!r}, asked for by {study.asked_by!r}, waits for approval. Read it, then "
            f"approve or reject it: silograph site approve {study.sha} --folder {folder}"
        )

    def _call(self, study: Pending, studies: Sequence[Pending]) -> None:
        """Call the program, unless it was told of this study."""
        told, program = self._read_told(), read_site(self._folder.path).on_pending
        if not program or told.get(study.sha) == study.when:
            return
        kept = {one.sha: told[one.sha] for one in studies if one.sha in told} | {study.sha: study.when}
        # First: a program that a crash keeps from being called is missed, one called twice is two mails
        write_bytes(self._folder.told, json.dumps(kept).encode())
        what = (program, self._folder, study, name_of(study.path), self._say)
        threading.Thread(target=call, args=what, daemon=True, name="on_pending").start()

    def _read_told(self) -> dict[str, Any]:
        try:
            return parse_json(self._folder.told.read_bytes())
        except (OSError, ValueError):
            return {}


class Unreadable:
    """Tells what a full read has found wrong with the data: whoever asked for it got one word."""

    def __init__(self, folder: SiteFolder, say: Say) -> None:
        self._folder, self._say = folder, say
        self._seen: int | None = None  # when read.json had changed
        self._said: str | None = None

    def look(self) -> None:
        """Tell it, if it is news; in a thread, as large files take their time."""
        changed = self._folder.read.stat().st_mtime_ns if self._folder.read.exists() else None
        if changed is not None and changed != self._seen:
            threading.Thread(target=self._tell, daemon=True, name="unreadable").start()
        self._seen = changed

    def _tell(self) -> None:
        problem = known_problem(self._folder)
        if problem is not None and problem != self._said:
            self._say(f"The data cannot be read, so that no study can be answered: {problem}")
        self._said = problem


@dataclass(slots=True)
class _Run:
    asked: str = ""  # the kind of the last request
    state: str = ""
    refused: set[str] = field(default_factory=set)


class Runs:
    """Tells of runs, by the entries that the audit log gets."""

    def __init__(self, folder: SiteFolder, say: Say) -> None:
        self._folder, self._say = folder, say
        self._at = folder.audit_log.stat().st_size if folder.audit_log.exists() else 0
        self._runs = dict[str, _Run]()

    def look(self) -> None:
        """Tell what is new."""
        for entry in self._new_entries():
            run = entry.get("run")
            if isinstance(run, str) and RUN_ID.fullmatch(run):
                self._note(run, self._runs.setdefault(run, _Run()), entry)
        for name, run in self._runs.items():
            if run.state == "running" and not is_held(self._folder, name):
                run.state = "stopped"
                self._say(f"Run {name} has stopped here before its end. It goes on when the coordinator asks again.")

    def _note(self, name: str, run: _Run, entry: dict[str, Any]) -> None:
        what = entry.get("what")
        if what == "asked":
            run.asked = str(entry.get("kind"))
        elif run.asked == "finish" and (what == "answered" or entry.get("code") == "kept"):
            if run.state != "ended":
                self._say(f"Run {name} has ended. Its graphs are in {self._folder.results / name}.")
            run.state = "ended"
        elif what == "answered" and run.asked == "hello" and run.state != "running":
            verb = "goes on" if run.state else "began"
            self._say(f"Run {name} {verb}: the study {study_called(self._folder, str(entry.get('study')))}.")
            run.state = "running"
        elif what == "refused":
            code = str(entry.get("code"))
            if code not in ROUTINE and code not in run.refused:
                run.refused.add(code)
                self._say(f"Refused a request of run {name}: {code} (not sent: {entry.get('detail', '')}).")

    def _new_entries(self) -> Iterator[dict[str, Any]]:
        if not self._folder.audit_log.exists():
            return
        with self._folder.audit_log.open("rb") as file:
            file.seek(self._at)
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                self._at += len(line)
                try:
                    yield parse_json(line)
                except ValueError:  # torn by a crash
                    continue


def is_held(folder: SiteFolder, run: str) -> bool:
    """Whether a process of this site has the run."""
    return locks.is_held(folder.state / run / LOCK)


def name_of(study: Path) -> str:
    """The name that a study's file gives it."""
    try:
        return parse_study(study.read_bytes(), source=study.name).name
    except (SilographError, OSError):
        return "of no name"


def study_called(folder: SiteFolder, sha: str) -> str:
    """A study for people: its name, where the site knows it, and its SHA-256."""
    path = folder.approved / f"{sha}.toml"
    return f"{name_of(path)!r}, {sha}" if path.exists() else sha
