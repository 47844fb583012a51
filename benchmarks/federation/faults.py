"""What a federation survives: processes killed, suspended and late, at random moments, and the same result to the bit.

    python -m benchmarks.federation.faults [--repeats 10] [--masked 3] [--only "site job"] [--out PAGE.md]

A server and three sites are founded, joined and hosted on this machine by the commands that people type. A study is run
undisturbed, then once per fault and moment; moments are uniform over the undisturbed run's duration, from the start of
the command to its end. A run counts as identical when its tables, the arrays of its graphs, its history and the result
in its record are the undisturbed run's by SHA-256; for a site that is gone for good, when they are what the same study
of the other sites gives in one process, and its certified gap is below the tolerance.

The page and its data are written after every case, and a measurement that was stopped goes on where it was. Each row
has the commit that it was measured on. Those of other code are dropped, so that the page is of one state of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import psutil

from benchmarks.federation.disturbed import FAULTS, TIMEOUT, CannotError, MissedError, Stage, gone_for_good
from benchmarks.federation.fault_table import RECENT, Table
from silograph.federation.coordinator.supervisor import ServerAwayError
from silograph.federation.nvflare.session import ServerSession, lead_session
from silograph.federation.site.audit import entries
from silograph.federation.site.budget import Budget
from silograph.federation.study_file import parse_study
from testing.conformance import assert_same_result, learned_here
from testing.real_federation import SITES, RealFederation, study_text
from testing.waiting import eventually

RESULTS = Path(__file__).resolve().parents[1] / "results"
CERTIFIED = 'method = "exact"\ndegree = 3\ntol = 1e-9'
CONTINUE = f'on_missing = "continue"\ntimeout = {TIMEOUT:g}'
FOUR_SITES = ("kyoto", "lima", "oslo", "quito")
OFTEN = 5  # disturbed runs, after which there is an undisturbed one
NUMBERS = itertools.count()  # of runs
MOST_MISSES = 10  # moments in a row at which there was nothing to disturb

Judge = Callable[[Stage], str]  # what is wrong with the result of a run; nothing if it is as it must be


@dataclass(frozen=True, slots=True)
class Mode:
    """What is disturbed: a study, with open or masked sums."""

    name: str
    learn: str  # [learn] of the study
    privacy: str | None = None  # more of [privacy], of a masked study; None: sums are open

    def study(self, federation: RealFederation, number: int) -> str:
        """A study; with noise always the same one: only then the same noise is in it."""
        if self.privacy is None:
            return study_text(self.learn, name=f"faults {number}")
        return federation.masked_text(
            self.learn, privacy=self.privacy, name="faults" if self.privacy else f"faults {number}"
        )


MODES = (  # sixty rounds, or two exchanges
    Mode("open", 'method = "algorithm1"\nrounds = 60\nalpha = 0.5\nbeta = 0.25'),
    Mode("masked", 'method = "oneshot"\ndegree = 3', ""),
    Mode("noise", 'method = "oneshot"\ndegree = 3', "epsilon = 1\ndelta = 1e-5\nmin_samples = 20"),
)


# --- runs -------------------------------------------------------------------------------------------------------------


def measure(federation: RealFederation, table: Table, mode: Mode, names: list[str], repeats: int) -> None:
    """Faults whose run must end as the undisturbed one does."""
    _, expected = undisturbed(federation, mode)  # compiles

    def judge(stage: Stage) -> str:
        return different(digests(stage.out), expected)

    def look(times: int) -> None:
        for _ in range(times):
            seconds, found = undisturbed(federation, mode)
            assert not different(found, expected), "undisturbed runs differ"
            table.add_undisturbed(mode.name, seconds)

    look(RECENT)
    for name in names:
        while missing := repeats - len(table.of(mode.name, name)):
            if not repeat(federation, table, mode, name, min(OFTEN, missing), judge, mode.study):
                break
            look(1)
    if mode.privacy is not None:
        tell_openings(federation)


def tell_openings(federation: RealFederation) -> None:
    """What left under masks, by the sites' logs and budgets: of each generation one answer, of each study one sum."""
    sent, generations = defaultdict[tuple[str, str], set[str]](set), set[str]()
    for site in federation.sites:
        for entry in entries(federation.home(site) / "audit.jsonl"):
            if str(entry.get("left", "")).startswith("a masked sum"):
                sent[site, str(entry["run"])].add(str(entry["sha256"]))
                generations.add(str(entry["run"]).partition(".")[2])
    studies = {len(Budget(federation.home(site)).openings()) for site in federation.sites}
    most = max(map(len, sent.values()))
    print(f"answers under one set of keys: {most} at most; generations: {', '.join(sorted(generations))}; openings of "
          f"each site: {studies}, of {len(list(federation.fed.glob('study-*.toml')))} runs", flush=True)  # fmt: skip


def measure_certified(federation: RealFederation, table: Table, mode: Mode, names: list[str], repeats: int) -> None:
    """Faults whose run must end as one of the other sites alone."""
    tables, nodes = federation.tables, (federation.folder / "nodes.txt").read_text().splitlines()

    def judge(stage: Stage) -> str:
        record = json.loads((stage.out / "run.json").read_text())
        if list(record["federation"]["left_out"]) != [stage.site]:
            raise MissedError
        others = {site: path for site, path in tables.items() if site != stage.site}
        learned = learned_here(parse_study(stage.study.encode(), source="study"), nodes, others)
        assert_same_result(stage.out, learned, nodes, list(others))
        return "" if record["result"]["relative_gap"] <= record["parameters"]["tol"] else "not certified"

    def study(federation: RealFederation, number: int) -> str:
        return study_text(CERTIFIED, CONTINUE, name=f"left {number}")

    table.add_undisturbed(mode.name, undisturbed(federation, mode)[0])
    for name in names:
        repeat(federation, table, mode, name, repeats - len(table.of(mode.name, name)), judge, study)


def repeat(
    federation: RealFederation,
    table: Table,
    mode: Mode,
    name: str,
    repeats: int,
    judge: Judge,
    study: Callable[[RealFederation, int], str],
) -> bool:
    """Disturb some runs; whether that was possible."""
    done = misses = 0
    while done < repeats and misses < MOST_MISSES:
        # Sites count the rounds of a study, all its runs together: so each run has its own
        number = next(NUMBERS)
        stage = Stage(
            federation=federation,
            out=federation.folder / f"out-{number}",
            study=study(federation, number),
            site=random.choice(federation.sites),
            moment=random.uniform(0, table.usual(mode.name)),
        )
        try:
            with stage.after:
                FAULTS[name](stage)
                code = stage.end()
                seconds = time.monotonic() - stage.began
            table.add(mode.name, name, stage, seconds, _wrong(stage, code, judge))
            done, misses = done + 1, 0
        except MissedError:
            stage.end()
            misses += 1
        except CannotError as error:
            print(f"{name}: left out, {error}.", flush=True)
            return False
        make_healthy(federation)
    return done == repeats


def _wrong(stage: Stage, code: int, judge: Judge) -> str:
    if code not in (0, 3) or not (stage.out / "run.json").exists() or (stage.out / "checkpoint").exists():
        return f"ended with code {code}, unfinished: {' / '.join(stage.said[-9:])}"
    try:
        return judge(stage)
    except AssertionError as error:
        return f"other than in one process: {error}"


def undisturbed(federation: RealFederation, mode: Mode) -> tuple[float, dict[str, str]]:
    """The duration of a run, and its result."""
    number = next(NUMBERS)
    out = federation.folder / f"out-{number}"
    began = time.monotonic()
    federation.run(mode.study(federation, number), out)
    return time.monotonic() - began, digests(out)


def digests(out: Path) -> dict[str, str]:
    """SHA-256 of each table and array of the results, of the history, and of the record's result without its time."""
    found = {str(path.relative_to(out)): _digest(path.read_bytes()) for path in sorted(out.rglob("*.csv"))}
    for path in sorted(out.rglob("graph.npz")):
        with np.load(path) as arrays:
            for name in arrays.files:
                kind = f"{arrays[name].dtype.str} {arrays[name].shape}"
                found[f"{path.relative_to(out)}: {name}"] = _digest(kind.encode() + arrays[name].tobytes())
    result = json.loads((out / "run.json").read_text())["result"]
    del result["seconds"]
    return found | {"objective": result["objective"].hex(), "result": _digest(json.dumps(result).encode())}


def different(found: dict[str, str], expected: dict[str, str]) -> str:
    """What two results differ in."""
    return ", ".join(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


# --- between runs -----------------------------------------------------------------------------------------------------


def make_healthy(federation: RealFederation) -> None:
    """Wait until all sites are connected and no job is left; start everything anew when that does not come."""
    for site in set(federation.sites) - set(federation.hosts):
        federation.start_site(site)
    try:
        with lead_session(federation.fed) as lead:
            eventually(lambda: _connected(lead) >= set(federation.sites), 120, every=0.5)
        eventually(lambda: not _jobs(federation), 60)
    except AssertionError:
        print("  not healthy; started anew", flush=True)
        for name in list(federation.hosts):
            federation.stop_server() if name not in federation.sites else federation.stop_site(name)
        federation.start()


def _connected(lead: ServerSession) -> set[str]:
    try:
        heard = lead.connected()
    except ServerAwayError:
        return set()
    return {site for site, at in heard.items() if time.time() - at < 10}


def _jobs(federation: RealFederation) -> list[psutil.Process]:
    found = [federation.find("site job", site) for site in federation.sites]
    return [process for process in [*found, federation.find("server job")] if process is not None]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=10, help="of each fault, with open sums")
    parser.add_argument("--masked", type=int, default=3, help="of each fault, with masked sums")
    parser.add_argument("--noise", type=int, default=0, help="of each fault, with noise")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--out", type=Path, default=RESULTS / "federation_faults.md", help="page to write")
    parser.add_argument("--patients", type=int, default=0, help="tables that each site has, instead of one")
    asked = parser.parse_args()
    table = Table.open(asked.out)
    names = [name for name in FAULTS if asked.only in name]
    certified = [name for name in names if FAULTS[name] is gone_for_good]
    plain = [name for name in names if name not in certified]
    patients = dict.fromkeys(SITES, asked.patients) if asked.patients else {}
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        for mode, repeats in zip(MODES, (asked.repeats, asked.masked, asked.noise), strict=True):
            if plain and repeats:
                with RealFederation(Path(place) / mode.name, patients=patients) as federation:
                    measure(federation, table, mode, plain, repeats)
        if certified:  # of a masked sum nobody can be left out
            with RealFederation(Path(place) / "four", sites=FOUR_SITES) as federation:
                measure_certified(federation, table, MODES[0], certified, asked.repeats)
    print(table.page())


if __name__ == "__main__":
    main()
