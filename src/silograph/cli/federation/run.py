"""The command `silograph federation run`: begin a run at the server, look on, and fetch its results.

The server conducts the run. What is needed to look on again, from here or from any machine that has the lead's kit, is
in --out before the server is asked: killed at any moment, the command loses nothing.
"""

import shlex
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from silograph._util.documents import parse_json
from silograph.cli.federation.asking import Patient
from silograph.cli.federation.live import LivePage, kept_beside
from silograph.cli.federation.looking import Looker
from silograph.cli.folders import federation_folder
from silograph.errors import CheckpointError, SilographError, SilosError
from silograph.federation.coordinator.desk import sites_of
from silograph.federation.names import new_run_name
from silograph.federation.nvflare.authority import read_federation
from silograph.federation.nvflare.session import lead_session
from silograph.federation.study_file import read_study
from silograph.runs.comparison_files import COMPARED
from silograph.runs.layout import TEMPORARY, RunLayout
from silograph.runs.record import RunRecord, read_record
from silograph.runs.writer import abandon_run, adopt_results, begin_run, check_output

HISTORY = "history.sqlite"
LOOK_SECONDS, LONGEST_PAUSE = 0.5, 3.0  # between two looks: at one that moves, and at one that waits


def begin_folder(home: Path, path: Path, out: Path, *, force: bool) -> None:
    """Write down, in `out`, all that it takes to begin a run of the study in a file, and to go on with it."""
    check_output(out, force=force)
    study, nodes = read_study(path)
    sites_of(study, nodes, read_federation(home), str(path))  # so that what is wrong is told without the server, too
    asked = {"format": 1, "federation": str(home.absolute()), "run": new_run_name(), "source": str(path)}
    begin_run(out, {**asked, "study": study.text.decode("utf-8"), "nodes": list(nodes)})


def home_of(out: Path, folder: Path | None) -> Path:
    """The federation's folder of an unfinished run: the one that is named, or was, or is here."""
    named = RunLayout(out).read_request().get("federation")
    if named is None:
        raise CheckpointError(f"{out}: is a run on this machine alone. Go on with: {RunLayout(out).resume_command()}")
    return federation_folder(folder or (Path(named) if Path(named).exists() else None))


def run_of(out: Path) -> str:
    """The name of an unfinished run."""
    return str(RunLayout(out).read_request()["run"])


def follow_run(
    home: Path, out: Path, looker: Looker, say: Callable[[str], None], *, fresh: bool, page: Path | None = None
) -> tuple[RunRecord, list[str]]:
    """Begin the run that `out` asks for, or look on; when it is done, bring its results there.

    Meanwhile, a live `page` is kept up to date.
    """
    request = RunLayout(out).read_request()
    name, again = run_of(out), RunLayout(out).resume_command()
    with lead_session(home) as session, ExitStack() as beside:
        if page is not None:
            with_page = f"{again} --page {shlex.quote(str(page))}"
            live = LivePage(page, home, session, command=with_page, run=name)
            beside.enter_context(kept_beside(live, say, lambda: _page_ended(out, with_page)))
        patient = Patient(session, say)
        about = {key: request[key] for key in ("study", "nodes", "source")}
        try:
            begun = patient.ask("begin", run=name, **about)
        except SilographError:
            if fresh:  # nothing was begun, so there is nothing to go on with
                abandon_run(out)
            raise
        for text in begun["notes"]:
            say(text)
        last = _look_on(patient, name, looker)
        if last["state"] != "done":
            raise SilosError(_why_not(last, out))
        with looker.phase("Fetching the results"):
            _fetch(patient, name, out)
    record = read_record(RunLayout(out).record)
    return record, _notes(record, out, looker.n_rounds)


def _page_ended(out: Path, again: str) -> tuple[str, str]:
    """Why the page is not kept up to date any more, in a word and in a sentence."""
    if RunLayout(out).is_finished:
        return "done", f"The run is done; its results are in {out}."
    if not RunLayout(out).is_unfinished:
        return "not begun", "The run has not begun; the command has said why."
    return "not followed", f"Nobody looks on from here any more. The run is at the server; look on again with: {again}"


def _look_on(patient: Patient, name: str, looker: Looker) -> dict[str, Any]:
    """Until the run is not wanted any more, or done; how it then is."""
    pause = LOOK_SECONDS
    while True:
        seen = patient.ask("look", run=name, **looker.known)
        moved = looker.show(seen)
        if seen["state"] in ("done", "stopped", "abandoned"):
            if not moved:  # the desk tells some hundred rounds at a time
                return seen
            continue
        pause = LOOK_SECONDS if moved else min(1.3 * pause, LONGEST_PAUSE)
        time.sleep(pause)


def _why_not(seen: dict[str, Any], out: Path) -> str:
    if seen["state"] == "abandoned":
        return f"The run was given up. Go on with it all the same: {RunLayout(out).resume_command()}"
    return str(seen["why"]).replace("with --resume", f"with: {RunLayout(out).resume_command()}")


def _fetch(patient: Patient, name: str, out: Path) -> None:
    """Bring the results to `out`: each file whole, as its checksum says, the record last."""
    made = Path(tempfile.mkdtemp(prefix=TEMPORARY[1], dir=out))
    try:
        for file in patient.ask("files", run=name)["files"]:
            patient.fetch(name, file, made)
        (made / HISTORY).replace(out / HISTORY)
        adopt_results(out, made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _notes(record: RunRecord, out: Path, rounds: int) -> list[str]:
    about = record.federation
    assert about is not None  # the coordinator wrote it
    sent = f"{(about.bytes_down + about.bytes_up) / 1e6:.1f} MB"
    notes = [
        f"{rounds} rounds with {len(record.silos)} sites, {sent} sent, {about.attempts} attempt(s); "
        "history.sqlite has them all."
    ]
    several = [f"{silo.name} {silo.n_silos}" for silo in record.silos if silo.n_silos is not None]
    if several:
        notes.append(f"Sites that answered with sums over several silos: {', '.join(several)}.")
    for site, reason in about.left_out.items():
        notes.append(f"Without {site} ({reason}): the result is the optimum of the other sites.")
    if about.rejected_answers:
        notes.append(
            f"{about.rejected_answers} answers were not believed; the server has them in runs/{about.run}/quarantine/."
        )
    compared = RunLayout(out).compare / COMPARED
    if compared.is_file():
        notes.append(str(parse_json(compared.read_bytes())["says"]))
    kept = [silo.name for silo in record.silos if not silo.graph_shared]
    if kept:
        notes.append(f"Graphs kept at their sites: {', '.join(kept)}.")
    return notes
