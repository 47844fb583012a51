"""What a federation survives: processes killed, suspended and late, at random moments, and the same result to the bit.

    python -m benchmarks.federation.faults [--repeats 10] [--only "site job"] [--out PAGE.md]

A server and three sites are founded, joined and hosted on this machine by the commands that people type. A study is run
undisturbed, then once per fault and moment; moments are uniform over the undisturbed run's duration, from the start of
the command to its end. A run counts as identical when its tables, the arrays of its graphs, its history and the result
in its record are the undisturbed run's by SHA-256; for a site that is gone for good, when they are what the same study
of the other sites gives in one process, and its certified gap is below the tolerance. The page and its data are written
after every case.
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
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import psutil

from benchmarks.federation.disturbed import FAULTS, TIMEOUT, MissedError, RealFederation, Stage, gone_for_good
from benchmarks.machine import facts
from silograph.federation.coordinator.supervisor import ServerAwayError
from silograph.federation.nvflare.session import ServerSession, lead_session
from silograph.federation.site.audit import entries
from silograph.federation.site.budget import Budget
from silograph.federation.study_file import parse_study
from testing.conformance import assert_same_result, learned_here
from testing.real_federation import SITES, study_text
from testing.waiting import eventually

RESULTS = Path(__file__).resolve().parents[1] / "results"
LEARN = {  # what is disturbed: sixty rounds, or two exchanges
    "algorithm1": 'method = "algorithm1"\nrounds = 60\nalpha = 0.5\nbeta = 0.25',
    "oneshot": 'method = "oneshot"\ndegree = 3',
}
PRIVACY = {"open": None, "masked": "", "noise": "epsilon = 1\ndelta = 1e-5\nmin_samples = 20"}
CERTIFIED = 'method = "exact"\ndegree = 3\ntol = 1e-9'
CONTINUE = f'on_missing = "continue"\ntimeout = {TIMEOUT:g}'
FOUR_SITES = ("kyoto", "lima", "oslo", "quito")
UNDISTURBED = 3  # runs that say how long one takes,
OFTEN = 5  # and after how many disturbed ones there is another
NUMBERS = itertools.count()  # of runs
MOST_MISSES = 10  # moments in a row at which there was nothing to disturb

Judge = Callable[[Stage], str]  # what is wrong with the result of a run; nothing if it is as it must be


@dataclass(slots=True)
class Table:
    """What was measured so far, on disk after every case."""

    path: Path
    learn: str  # [learn] of the study
    privacy: str | None = None  # more of [privacy], of a masked study; None: sums are open
    usual: list[float] = field(default_factory=list)  # seconds of undisturbed runs
    cases: list[dict[str, Any]] = field(default_factory=list)

    def study(self, federation: RealFederation, number: int) -> str:
        """A study; with noise always the same one: only then the same noise is in it."""
        if self.privacy is None:
            return study_text(self.learn, name=f"faults {number}")
        return federation.masked_text(
            self.learn, privacy=self.privacy, name="faults" if self.privacy else f"faults {number}"
        )

    @property
    def now(self) -> float:
        """Seconds of an undisturbed run, as busy as the machine is these days."""
        return median(self.usual[-UNDISTURBED:])

    def add(self, name: str, stage: Stage, seconds: float, wrong: str) -> None:
        """A disturbed run."""
        record = stage.out / "run.json"
        attempts = json.loads(record.read_text())["federation"]["attempts"] if record.exists() else None
        extra = seconds - stage.lasted - self.now
        case = {"fault": name, "site": stage.site, "moment": stage.moment, "rounds": stage.rounds, "extra": extra}
        self.cases.append({**case, "attempts": attempts, "identical": not wrong, "load": facts()["load"]})
        told = (
            f"{name}: {stage.site} at {stage.moment:.1f} s, {stage.rounds} rounds, {attempts} attempts, {extra:+.1f} s"
        )
        print(f"{told}, {f'WRONG: {wrong}' if wrong else 'identical'}", flush=True)
        self.write()

    def write(self) -> None:
        """Write the page and the data."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        report = {"machine": facts(), "study": self.learn, "undisturbed": self.usual, "cases": self.cases}
        self.path.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        self.path.write_text(page(report), encoding="utf-8")


def page(report: dict[str, Any]) -> str:
    """The page of what was measured."""
    machine, usual, cases = report["machine"], report["undisturbed"], report["cases"]
    loads = [case["load"] for case in cases] or [0.0]
    lines = [
        "# What a federation survives",
        "",
        "A server and three sites on one machine, one fault per run at a random moment of it: see",
        f"`benchmarks/federation/faults.py`. {machine['cpu']}, {machine['cpu_count']} cores that others used too, load",
        f"{min(loads):.0f} to {max(loads):.0f}. Undisturbed runs took {min(usual):.0f} to {max(usual):.0f} s.",
        f"Extra seconds: above the median of the last {UNDISTURBED} of them, without the time that the fault lasts.",
        "",
        "| fault | times | identical | attempts (mean) | extra seconds: median | worst |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(case["fault"] for case in cases):
        rows = [case for case in cases if case["fault"] == name]
        extra, attempts = [case["extra"] for case in rows], [case["attempts"] or 0 for case in rows]
        same = f"{sum(case['identical'] for case in rows)} of {len(rows)}"
        cells = [name, str(len(rows)), same, f"{mean(attempts):.1f}", f"{median(extra):.0f}", f"{max(extra):.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


# --- runs -------------------------------------------------------------------------------------------------------------


def measure(federation: RealFederation, table: Table, names: list[str], repeats: int) -> None:
    """Faults whose run must end as the undisturbed one does."""
    _, expected = undisturbed(federation, table)  # compiles

    def judge(stage: Stage) -> str:
        return different(digests(stage.out), expected)

    def look(times: int) -> None:
        for _ in range(times):
            seconds, found = undisturbed(federation, table)
            assert not different(found, expected), "undisturbed runs differ"
            table.usual.append(seconds)
            print(f"undisturbed: {seconds:.1f} s", flush=True)

    look(UNDISTURBED)
    for name in names:
        for first in range(0, repeats, OFTEN):
            times = min(OFTEN, repeats - first)
            repeat(federation, table, name, times, judge, lambda k: table.study(federation, k))
            look(1)
    if table.privacy is not None:
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


def measure_certified(federation: RealFederation, table: Table, names: list[str], repeats: int) -> None:
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

    for name in names:
        repeat(
            federation,
            table,
            name,
            repeats,
            judge,
            lambda number: study_text(CERTIFIED, CONTINUE, name=f"left {number}"),
        )


def repeat(
    federation: RealFederation, table: Table, name: str, repeats: int, judge: Judge, study: Callable[[int], str]
) -> None:
    """Disturb some runs."""
    done = misses = 0
    while done < repeats and misses < MOST_MISSES:
        # Sites count the rounds of a study, all its runs together: so each run has its own
        number = next(NUMBERS)
        stage = Stage(
            federation=federation,
            out=federation.folder / f"out-{number}",
            study=study(number),
            site=random.choice(federation.sites),
            moment=random.uniform(0, table.now),
        )
        try:
            FAULTS[name](stage)
            code = stage.end()
            seconds = time.monotonic() - stage.began
            table.add(name, stage, seconds, _wrong(stage, code, judge))
            done, misses = done + 1, 0
        except MissedError:
            stage.end()
            misses += 1
        make_healthy(federation)


def _wrong(stage: Stage, code: int, judge: Judge) -> str:
    if code not in (0, 3) or not (stage.out / "run.json").exists() or (stage.out / "checkpoint").exists():
        return f"ended with code {code}, unfinished: {' / '.join(stage.said[-9:])}"
    try:
        return judge(stage)
    except AssertionError as error:
        return f"other than in one process: {error}"


def undisturbed(federation: RealFederation, table: Table) -> tuple[float, dict[str, str]]:
    """The duration of a run, and its result."""
    number = next(NUMBERS)
    out = federation.folder / f"out-{number}"
    began = time.monotonic()
    federation.run(table.study(federation, number), out)
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
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--out", type=Path, default=RESULTS / "federation_faults.md", help="page to write")
    parser.add_argument("--more", action="store_true", help="add to what the page's data have")
    parser.add_argument("--method", choices=LEARN, default="algorithm1", help="of the run that is disturbed")
    parser.add_argument("--privacy", choices=PRIVACY, default="open", help="of the same; for oneshot")
    parser.add_argument("--patients", type=int, default=0, help="tables that each site has, instead of one")
    asked = parser.parse_args()
    table = Table(asked.out, LEARN[asked.method], PRIVACY[asked.privacy])
    if asked.more:
        report = json.loads(asked.out.with_suffix(".json").read_text())
        table.usual, table.cases = report["undisturbed"], report["cases"]
    names = [name for name in FAULTS if asked.only in name]
    certified = [name for name in names if FAULTS[name] is gone_for_good]
    plain = [name for name in names if name not in certified]
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        if plain:
            patients = dict.fromkeys(SITES, asked.patients) if asked.patients else {}
            with RealFederation(Path(place) / "three", patients=patients) as federation:
                measure(federation, table, plain, asked.repeats)
        if certified:
            with RealFederation(Path(place) / "four", sites=FOUR_SITES) as federation:
                table.usual = table.usual or [undisturbed(federation, table)[0]]
                measure_certified(federation, table, certified, asked.repeats)
    print(page(json.loads(asked.out.with_suffix(".json").read_text())))


if __name__ == "__main__":
    main()
