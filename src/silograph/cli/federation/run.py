"""The command `silograph federation run`: a study with real sites, from the study file to the run's folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress, TaskID

from silograph._util.locks import Lock
from silograph.cli.folders import federation_folder
from silograph.cli.progress import progress_bar
from silograph.errors import CheckpointError, ParameterError, SilosError
from silograph.federation.coordinator.history import History, Site
from silograph.federation.coordinator.run_folder import HISTORY, RESULTS, RUNS, RunFolder, new_run, open_run
from silograph.federation.coordinator.supervisor import Supervisor
from silograph.federation.nvflare.authority import read_federation
from silograph.federation.nvflare.session import ServerSession
from silograph.federation.refusals import PASSING
from silograph.federation.study_file import read_study
from silograph.runs.layout import FEDERATION, RunLayout
from silograph.runs.record import RunRecord, read_record
from silograph.runs.writer import adopt_results, begin_run, check_output

EVERY = 0.5  # seconds between two looks at the history


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the engineer asked for."""

    federation: Path
    study: Path
    out: Path
    force: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """A run that is to be brought to its end."""

    federation: Path
    run: RunFolder


def begun(request: RunRequest) -> Going:
    """A new run of a study."""
    check_output(request.out, force=request.force)
    study, nodes = read_study(request.study)
    invitation = read_federation(request.federation)
    sites = study.sites or invitation.sites
    strangers = [site for site in sites if site not in invitation.sites]
    if strangers:
        raise ParameterError(f"{request.study}, sites: {', '.join(strangers)} are not of this federation.")
    if invitation.nodes is not None and set(nodes) != set(invitation.nodes):
        raise SilosError(f"{request.study}: its nodes are not those to which the sites were invited.")
    waiting = [site for site in sites if not (request.federation / "sites" / f"{site}.crt").exists()]
    if waiting:
        raise SilosError(
            f"{', '.join(waiting)}: not approved yet. Approve each request: silograph federation approve "
            f"{waiting[0]}.request.zip; or leave the site out: sites = [...] in {request.study}."
        )
    run = new_run(request.federation / RUNS, study, nodes, sites)
    begin_run(request.out, {"format": 1, "federation": str(request.federation.absolute()), "run": run.name})
    return Going(federation=request.federation, run=run)


def resumed(out: Path, folder: Path | None) -> Going:
    """An unfinished run."""
    asked = RunLayout(out).read_request()
    if "federation" not in asked:
        raise CheckpointError(f"{out}: is a run on this machine alone. Go on with: {RunLayout(out).resume_command()}")
    federation = federation_folder(folder or Path(asked["federation"]))
    return Going(federation=federation, run=open_run(federation / RUNS / asked["run"]))


def finished(
    going: Going, out: Path, *, show_progress: bool, say: Callable[[str], None]
) -> tuple[RunRecord, list[str]]:
    """Bring the run to its end and its results to `out`; the record, and what is worth a word."""
    lock = Lock(going.run.folder / "supervisor")
    if not lock.take():
        raise SilosError(f"{out}: another `{FEDERATION}` is at work on this run. Wait for it, or end it.")
    with progress_bar(show_progress) as progress, ServerSession(going.federation) as lead:
        watch = _Watch(progress=progress, task=progress.add_task("Waiting for the sites", total=None), say=say)
        run = Supervisor(going.run, lead, tell=watch.tell, on_poll=watch.look).finish()
    adopt_results(out, run.folder / RESULTS)
    lock.release()
    with History.open_read(run.history) as history:
        rounds = len(history.rounds())
    shutil.copyfile(run.history, out / HISTORY)
    record = read_record(RunLayout(out).record)
    return record, _notes(record, rounds)


def _notes(record: RunRecord, rounds: int) -> list[str]:
    about = record.federation
    assert about is not None  # the coordinator wrote it
    sent = f"{(about.bytes_down + about.bytes_up) / 1e6:.1f} MB"
    notes = [
        f"{rounds} rounds with {len(record.silos)} sites, {sent} sent, {about.attempts} attempt(s); "
        f"{HISTORY} has them all."
    ]
    for site, reason in about.left_out.items():
        notes.append(f"Without {site} ({reason}): the result is the optimum of the other sites.")
    if about.rejected_answers:
        notes.append(
            f"{about.rejected_answers} answers were not believed; see runs/{about.run}/quarantine/ in the "
            "federation's folder."
        )
    kept = [silo.name for silo in record.silos if not silo.graph_shared]
    if kept:
        notes.append(f"Graphs kept at their sites: {', '.join(kept)}.")
    return notes


@dataclass(slots=True, kw_only=True)
class _Watch:
    """What the engineer sees while the run goes on."""

    progress: Progress
    task: TaskID
    say: Callable[[str], None]
    looked: float = 0.0
    told: set[str] = field(default_factory=set)

    def tell(self, text: str) -> None:
        """Say something above the progress, once in a row."""
        self.say(text)

    def look(self, run: RunFolder) -> None:
        """Read the history, and show how far the run is."""
        now = time.monotonic()
        if now - self.looked < EVERY:
            return
        self.looked = now
        with History.open_read(run.history) as history:
            rounds, sites = history.rounds(), {site.name: site for site in history.sites()}
        for site in sites.values():
            self._tell_waiting(site)
        if not rounds:
            return
        last = rounds[-1]
        stage = "Set-up" if last.stage == "setup" else "Round"
        gap = "" if last.gap is None else f", certified gap {last.gap:.1e}"
        seen = [site.last_seen for site in sites.values() if site.last_seen is not None]
        ago = f", last seen {max(0.0, time.time() - min(seen)):.0f} s ago" if seen else ""
        size = sum(one.bytes_down + one.bytes_up for one in rounds) / 1e6
        answer_task = f"{last.silos} of {len(run.sites)} sites answered"
        self.progress.update(self.task, description=f"{stage} {last.round}{gap}: {answer_task}{ago}, {size:.1f} MB")

    def _tell_waiting(self, site: Site) -> None:
        if site.state in PASSING - {"busy", "unknown-run"} and site.name not in self.told:
            self.told.add(site.name)
            self.say(f"{site.name}: {site.note}.")
        elif site.state == "answered":
            self.told.discard(site.name)
