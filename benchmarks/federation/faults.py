"""What a federation survives: processes killed, suspended and late, at random moments, and the same result to the bit.

    python -m benchmarks.federation.faults [--repeats 10] [--only "site job"] [--out PAGE.md]

A server and three sites are founded, joined and hosted on this machine by the commands that people type. A study is run
undisturbed, then once per fault and moment; moments are uniform over the undisturbed run's duration, from the command's
start to its end. A run counts as identical when every graph file, the history and the record's result are the
undisturbed run's by SHA-256 (arrays of `graph.npz` one by one). Measurements are written after every case.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import psutil

from benchmarks.machine import facts

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))  # the federation that tests run on

from federation.nvflare.federation import SERVER, RealFederation, study_text, until  # noqa: E402
from silograph.federation.coordinator.history import History  # noqa: E402
from silograph.federation.coordinator.supervisor import ServerAwayError  # noqa: E402
from silograph.federation.nvflare.session import Lead  # noqa: E402

LEARN = 'method = "algorithm1"\nrounds = 100\nalpha = 0.5\nbeta = 0.25'
PATIENCE = 600.0  # seconds for a run to end, whatever happened to it
MOST_MISSES = 10  # moments at which there was nothing left to disturb
TROUBLES: dict[str, Callable[[Stage], None]] = {}


class MissedError(Exception):
    """The run was over before the fault could happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One disturbed run."""

    fault: str
    site: str
    moment: float  # seconds from the start of the command
    rounds: int  # done when the fault happened
    seconds: float  # of the whole run, waiting that is part of the fault included
    idle: float  # seconds of it that the fault itself lasted, when it is the fault that takes time
    attempts: int
    identical: bool
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A run that is going to be disturbed."""

    federation: RealFederation
    out: Path
    site: str
    moment: float
    study: str
    began: float = 0.0
    run: subprocess.Popen[str] | None = None
    rounds: int = 0
    lasted: float = 0.0
    note: str = ""
    log: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Start the command."""
        self.began = time.monotonic()
        self.run = self.federation.start_run(self.study, self.out)

    def resume(self) -> None:
        """Go on with the run, by hand, unless it was over."""
        if (self.out / "checkpoint").exists():
            self.run = self.federation.spawn("federation", "run", "--resume", self.out, "--json")

    def wait(self) -> None:
        """Wait for the moment."""
        time.sleep(max(0.0, self.began + self.moment - time.monotonic()))

    def hit(self) -> None:
        """Note that the fault happens now."""
        self.moment = time.monotonic() - self.began
        self.rounds = rounds_of(self.federation, self.out)

    @property
    def over(self) -> bool:
        """Whether the command has ended."""
        return self.run is None or self.run.poll() is not None

    def kill(self, kind: str) -> None:
        """Kill a process as soon as there is one."""
        self.wait()
        while (found := self.federation.find(kind, self.site)) is None:  # type: ignore[arg-type]
            if self.over:
                raise MissedError
            time.sleep(0.02)
        self.hit()
        with contextlib.suppress(psutil.NoSuchProcess):
            found.kill()

    def kill_command(self) -> None:
        """Kill `federation run`."""
        if self.over:
            raise MissedError
        assert self.run is not None
        os.killpg(self.run.pid, signal.SIGKILL)
        self.run.communicate()

    def kill_host(self, name: str) -> None:
        """Kill a hosting process; what it hosts ends by itself."""
        host = self.federation.hosts.pop(name)
        host.kill()
        host.wait()

    def end(self) -> int:
        """Wait for the run's end; its exit code."""
        assert self.run is not None
        try:
            _, errors = self.run.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.run.pid, signal.SIGKILL)
            _, errors = self.run.communicate()
            errors += "\nkilled: it did not end"
        self.log += errors.splitlines()
        return self.run.returncode


def trouble(name: str) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Add a fault to the table."""

    def add(act: Callable[[Stage], None]) -> Callable[[Stage], None]:
        TROUBLES[name] = act
        return act

    return add


# --- faults -----------------------------------------------------------------------------------------------------------


@trouble("site job killed")
def _site_job(stage: Stage) -> None:
    stage.start()
    stage.kill("site job")


@trouble("site parent killed")
def _site_parent(stage: Stage) -> None:
    stage.start()
    stage.kill("site parent")


@trouble("server job killed")
def _server_job(stage: Stage) -> None:
    stage.start()
    stage.kill("server job")


@trouble("server parent killed")
def _server_parent(stage: Stage) -> None:
    stage.start()
    stage.kill("server parent")


@trouble("site host killed, started by hand after 3 s")
def _site_host(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.kill_host(stage.site)
    time.sleep(3.0)
    stage.federation.start_site(stage.site)


@trouble("server host killed, started by hand after 3 s")
def _server_host(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.kill_host(SERVER)
    time.sleep(3.0)
    stage.federation.start_server()


@trouble("`federation run` killed and resumed")
def _command(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.kill_command()
    if not (stage.out / "checkpoint").exists() and not (stage.out / "run.json").exists():
        raise MissedError  # it had not begun
    stage.resume()


@trouble("everything killed, started and resumed")
def _everything(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.kill_command()
    for name in list(stage.federation.hosts):
        stage.kill_host(name)
    for process in stage.federation.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    if not (stage.out / "checkpoint").exists() and not (stage.out / "run.json").exists():
        stage.federation.start()
        raise MissedError
    stage.federation.start_server()
    for site in stage.federation.sites:
        stage.federation.start_site(site)
    stage.resume()


@trouble("site suspended for 15 to 40 s")
def _suspended(stage: Stage) -> None:
    stage.start()
    stage.wait()
    host = psutil.Process(stage.federation.hosts[stage.site].pid)
    processes = [host, *host.children(recursive=True)]
    if stage.over:
        raise MissedError
    stage.hit()
    stage.lasted = random.uniform(15, 40)
    stage.note = f"{stage.lasted:.0f} s"
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        if number == signal.SIGSTOP:
            time.sleep(stage.lasted)


@trouble("site starts 20 s late")
def _late(stage: Stage) -> None:
    stage.federation.stop_site(stage.site)
    stage.start()
    stage.moment, stage.lasted = 0.0, 20.0
    time.sleep(20.0)
    stage.federation.start_site(stage.site)


@trouble('site gone for 60 s, on_missing = "wait"')
def _gone(stage: Stage) -> None:
    stage.start()
    stage.wait()
    if stage.over:
        raise MissedError
    stage.hit()
    stage.lasted = 60.0
    stage.kill_host(stage.site)
    time.sleep(60.0)
    stage.federation.start_site(stage.site)


# --- one case ---------------------------------------------------------------------------------------------------------


def disturbed(federation: RealFederation, name: str, moment: float, expected: dict[str, str]) -> Measured:
    """One run with one fault; raises `MissedError` when there was nothing to disturb."""
    out, study = new_run(federation)
    stage = Stage(federation=federation, out=out, site=random.choice(federation.sites), moment=moment, study=study)
    try:
        TROUBLES[name](stage)
        code = stage.end()
    except MissedError:
        if stage.run is not None and stage.run.poll() is None:
            stage.end()
        raise
    seconds = time.monotonic() - stage.began
    same, note = compared(out, expected, code)
    if not same:
        note += "; " + " / ".join(stage.log[-8:])
    record = json.loads((out / "run.json").read_text()) if (out / "run.json").exists() else None
    return Measured(
        fault=name,
        site=stage.site,
        moment=stage.moment,
        rounds=stage.rounds,
        seconds=seconds,
        idle=stage.lasted,
        attempts=record["federation"]["attempts"] if record else 0,
        identical=same,
        note="; ".join(filter(None, [stage.note, note])),
    )


def undisturbed(federation: RealFederation) -> tuple[float, dict[str, str]]:
    """The duration of a run, and its result."""
    out, study = new_run(federation)
    began = time.monotonic()
    federation.run(study, out)
    return time.monotonic() - began, digests(out)


def new_run(federation: RealFederation) -> tuple[Path, str]:
    """A folder for a run, and a study of its own: sites count the rounds of a study, all its runs together."""
    number = sum(1 for _ in (federation.fed / "runs").glob("*")) if (federation.fed / "runs").exists() else 0
    return federation.folder / f"out-{number}", study_text(LEARN, name=f"faults {number}")


def compared(out: Path, expected: dict[str, str], code: int) -> tuple[bool, str]:
    """Whether a run ended well and as expected; what is different."""
    if code not in (0, 3) or not (out / "run.json").exists() or (out / "checkpoint").exists():
        return False, f"ended with code {code}, unfinished"
    found = digests(out)
    other = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    return not other, "differs: " + ", ".join(other) if other else ""


def digests(out: Path) -> dict[str, str]:
    """SHA-256 of each table and array of the results, of the history, and of the record's result without its time."""
    found = {str(path.relative_to(out)): _sha256(path.read_bytes()) for path in sorted(out.rglob("*.csv"))}
    for path in sorted(out.rglob("graph.npz")):
        with np.load(path) as arrays:
            for name in arrays.files:
                array = arrays[name]
                content = f"{array.dtype.str} {array.shape}".encode() + array.tobytes()
                found[f"{path.relative_to(out)}:{name}"] = _sha256(content)
    result = json.loads((out / "run.json").read_text())["result"]
    found["objective"] = float(result["objective"]).hex()
    del result["seconds"]
    return found | {"run.json": _sha256(json.dumps(result, sort_keys=True).encode())}


def _sha256(data: bytes) -> str:
    return sha256(data).hexdigest()


def rounds_of(federation: RealFederation, out: Path) -> int:
    """How many rounds the run in a folder has done."""
    try:
        asked = json.loads((out / "checkpoint" / "request.json").read_text())
    except (OSError, ValueError):
        return 0
    with History.open_read(federation.fed / "runs" / asked["run"] / "history.sqlite") as history:
        return len(history.rounds())


# --- the table --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Table:
    """What was measured so far, on disk after every case."""

    path: Path
    usual: list[float] = field(default_factory=list)  # seconds of undisturbed runs
    cases: list[dict[str, Any]] = field(default_factory=list)

    def write(self) -> None:
        """Write the page and the data."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        report = {"machine": facts(), "study": LEARN, "undisturbed": self.usual, "cases": self.cases}
        self.path.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        self.path.write_text(self.page())

    def page(self) -> str:
        """The page."""
        lines = [
            "| fault | times | identical | attempts (mean) | extra seconds: median | worst |",
            "|---|---|---|---|---|---|",
        ]
        for name in dict.fromkeys(case["fault"] for case in self.cases):
            rows = [case for case in self.cases if case["fault"] == name]
            extra = [case["seconds"] - case["idle"] - median(self.usual) for case in rows]
            lines.append(
                f"| {name} | {len(rows)} | {sum(case['identical'] for case in rows)} of {len(rows)} "
                f"| {mean(case['attempts'] for case in rows):.1f} | {median(extra):.0f} | {max(extra):.0f} |"
            )
        return "\n".join(lines) + "\n"


def healthy(federation: RealFederation) -> None:
    """Wait until all sites are connected and no job is left; starts everything anew when that does not come."""
    try:
        with Lead(federation.fed) as lead:
            until(lambda: connected(lead) >= set(federation.sites), 120, 0.5)
        until(lambda: not jobs(federation), 60)
    except AssertionError:
        print("  the federation is not healthy and is started anew", flush=True)
        for name in list(federation.hosts):
            federation._stop(name)
        federation.start()


def connected(lead: Lead) -> set[str]:
    """The sites that the server has heard of lately."""
    try:
        heard = lead.connected()
    except ServerAwayError:
        return set()
    return {site for site, at in heard.items() if time.time() - at < 10}


def jobs(federation: RealFederation) -> list[psutil.Process]:
    """Processes of jobs that still run."""
    kinds = ("site job", "server job")
    sites = [(kind, site) for kind in kinds for site in federation.sites]
    return [one for one in (federation.find(kind, site) for kind, site in sites) if one is not None]


def measure(federation: RealFederation, table: Table, names: list[str], repeats: int) -> None:
    """All faults, each some times."""
    undisturbed(federation)  # compiles
    expected: dict[str, str] = {}
    for _ in range(3):
        seconds, found = undisturbed(federation)
        assert not expected or expected == found, "undisturbed runs differ"
        expected = found
        table.usual.append(seconds)
        print(f"undisturbed: {seconds:.1f} s", flush=True)
    for name in names:
        for one in _repeated(federation, name, repeats, expected, table):
            extra = one.seconds - one.idle - median(table.usual)
            print(
                f"{name}: at {one.moment:.1f} s, {one.rounds} rounds, {one.attempts} attempts, +{extra:.1f} s, "
                f"{'identical' if one.identical else 'NOT IDENTICAL'} {one.note}",
                flush=True,
            )
            table.cases.append(asdict(one))
            table.write()
        seconds, found = undisturbed(federation)
        assert expected == found, "undisturbed runs differ"
        table.usual.append(seconds)


def _repeated(
    federation: RealFederation, name: str, repeats: int, expected: dict[str, str], table: Table
) -> Iterator[Measured]:
    misses = done = 0
    while done < repeats and misses < MOST_MISSES:
        try:
            yield disturbed(federation, name, random.uniform(0, median(table.usual)), expected)
            done += 1
        except MissedError:
            misses += 1
        healthy(federation)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "federation_faults.md")
    parser.add_argument("--folder", type=Path, help="where the federation is put, and left")
    asked = parser.parse_args()
    names = [name for name in TROUBLES if asked.only in name]
    table = Table(asked.out)
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as place,
        RealFederation(asked.folder or Path(place)) as federation,
    ):
        measure(federation, table, names, asked.repeats)
    print(table.page())


if __name__ == "__main__":
    main()
