"""The command `silograph federation run`: a study with real sites, from the study file to the run's folder."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress, TaskID

from silograph._util.documents import parse_json
from silograph._util.locks import Lock
from silograph.cli.folders import federation_folder
from silograph.cli.progress import progress_bar
from silograph.errors import CheckpointError, ParameterError, SilosError
from silograph.federation.coordinator.history import History, Site
from silograph.federation.coordinator.run import CoordinatorRun, new_run, open_run
from silograph.federation.coordinator.supervisor import Supervisor
from silograph.federation.folders import FederationFolder
from silograph.federation.nvflare.authority import read_federation
from silograph.federation.nvflare.session import ServerSession
from silograph.federation.refusals import PASSING
from silograph.federation.study_file import read_study
from silograph.runs.comparison_files import COMPARED
from silograph.runs.layout import FEDERATION, RunLayout
from silograph.runs.record import RunRecord, read_record
from silograph.runs.writer import adopt_results, check_output
from silograph.runs.writer import begin_run as begin_folder

LOOK_SECONDS = 0.5  # between two looks at the history


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run to bring to its end."""

    federation: Path
    run: CoordinatorRun


def begin_run(folder: Path, path: Path, out: Path, *, force: bool) -> OpenRun:
    """Begin a new run of the study in a file, with the federation in a folder."""
    check_output(out, force=force)
    study, nodes = read_study(path)
    federation, invitation = FederationFolder(folder), read_federation(folder)
    sites = study.sites or invitation.sites
    strangers = [site for site in sites if site not in invitation.sites]
    if strangers:
        raise ParameterError(f"{path}, sites: {', '.join(strangers)} are not of this federation.")
    if invitation.nodes is not None and set(nodes) != set(invitation.nodes):
        raise SilosError(f"{path}: its nodes are not those to which the sites were invited.")
    waiting = [site for site in sites if not federation.certificate(site).exists()]
    if waiting:
        raise SilosError(
            f"{', '.join(waiting)}: not approved yet. Approve each request: silograph federation approve "
            f"{waiting[0]}.request.zip; or leave the site out: sites = [...] in {path}."
        )
    run = new_run(federation.runs, study, nodes, sites)
    begin_folder(out, {"format": 1, "federation": str(folder.absolute()), "run": run.name})
    return OpenRun(folder, run)


def resume_run(out: Path, folder: Path | None) -> OpenRun:
    """Take up an unfinished run."""
    request = RunLayout(out).read_request()
    if "federation" not in request:
        raise CheckpointError(f"{out}: is a run on this machine alone. Go on with: {RunLayout(out).resume_command()}")
    federation = federation_folder(folder or Path(request["federation"]))
    return OpenRun(federation, open_run(FederationFolder(federation).run(request["run"])))


def finish_run(
    unfinished: OpenRun, out: Path, *, show_progress: bool, say: Callable[[str], None]
) -> tuple[RunRecord, list[str]]:
    """Bring the run to its end and its results to `out`; returns the record, and notes for people."""
    lock = Lock(unfinished.run.supervisor_lock)
    if not lock.take():
        raise SilosError(f"{out}: another `{FEDERATION}` is at work on this run. Wait for it, or end it.")
    try:
        with progress_bar(show_progress) as progress, ServerSession(unfinished.federation) as session:
            watch = Watch(progress=progress, task=progress.add_task("Waiting for the sites", total=None), say=say)
            run = Supervisor(unfinished.run, session, tell=say, on_poll=watch.look).finish()
        adopt_results(out, run.results)
    finally:
        lock.release()
    with History.open_read(run.history) as history:
        rounds = len(history.rounds())
    shutil.copyfile(run.history, out / run.history.name)
    record = read_record(RunLayout(out).record)
    return record, _notes(record, run, rounds)


def _notes(record: RunRecord, run: CoordinatorRun, rounds: int) -> list[str]:
    about = record.federation
    assert about is not None  # the coordinator wrote it
    sent = f"{(about.bytes_down + about.bytes_up) / 1e6:.1f} MB"
    notes = [
        f"{rounds} rounds with {len(record.silos)} sites, {sent} sent, {about.attempts} attempt(s); "
        f"{run.history.name} has them all."
    ]
    several = [f"{silo.name} {silo.n_silos}" for silo in record.silos if silo.n_silos is not None]
    if several:
        notes.append(f"Sites that answered with sums over several silos: {', '.join(several)}.")
    for site, reason in about.left_out.items():
        notes.append(f"Without {site} ({reason}): the result is the optimum of the other sites.")
    if about.rejected_answers:
        notes.append(f"{about.rejected_answers} answers were not believed; they are in {run.quarantine}.")
    compared = RunLayout(run.results).compare / COMPARED
    if compared.is_file():
        notes.append(str(parse_json(compared.read_bytes())["says"]))
    kept = [silo.name for silo in record.silos if not silo.graph_shared]
    if kept:
        notes.append(f"Graphs kept at their sites: {', '.join(kept)}.")
    return notes


@dataclass(slots=True, kw_only=True)
class Watch:
    """Shows the engineer how far the run is."""

    progress: Progress
    task: TaskID
    say: Callable[[str], None]
    began: float = field(default_factory=time.time)
    looked: float = 0.0
    announced: set[str] = field(default_factory=set)

    def look(self, run: CoordinatorRun) -> None:
        """Read the history, and show how far the run is."""
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        self.looked = now
        with History.open_read(run.history) as history:
            rounds, sites = history.rounds(), {site.name: site for site in history.sites()}
        for site in sites.values():
            self._announce_waiting(site)
        if not rounds:
            return
        last = rounds[-1]
        stage = "Set-up" if last.stage == "setup" else "Round"
        gap = "" if last.gap is None else f", certified gap {last.gap:.1e}"
        seen = [site.last_seen for site in sites.values() if site.last_seen is not None]
        ago = f", last seen {max(0.0, time.time() - min(seen)):.0f} s ago" if seen else ""
        size = sum(one.bytes_down + one.bytes_up for one in rounds) / 1e6
        of = "" if last.silos in (None, len(run.sites)) else f" with {last.silos} silos"
        answered = f"{len(run.sites)} sites{of} answered"
        self.progress.update(self.task, description=f"{stage} {last.round}{gap}: {answered}{ago}, {size:.1f} MB")

    def _announce_waiting(self, site: Site) -> None:
        if site.last_seen is None or site.last_seen < self.began:
            return  # of an earlier attempt: what it said then may be cured
        if site.state in PASSING - {"busy", "unknown-run"} and site.name not in self.announced:
            self.announced.add(site.name)
            self.say(f"{site.name}: {site.note}.")
        elif site.state == "answered":
            self.announced.discard(site.name)
