"""A run that is disturbed, and the ways to disturb it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.federation.surroundings import SmallDisk, clock_library, may_mount, proxied
from silograph.federation.coordinator.history import History
from testing.real_federation import SERVER, Kind, RealFederation

PATIENCE = 900.0  # seconds for a run to end, whatever happened to it
BY_HAND = 3.0  # seconds until somebody starts again what was killed
TIMEOUT = 15.0  # seconds, of the policy in the last of the faults
FAULTS: dict[str, Callable[[Stage], None]] = {}


STALL, FULL = 30.0, 20.0  # seconds that the network passes nothing, that a disk is full
AHEAD = "+1d"  # how far off a clock is
# `host_site` hands an environment on to the site's processes, which the command does not
CLOCKED = (
    "import sys; from silograph.federation.nvflare.hosting import host_site; host_site({home!r}, environment={env})"
)


class MissedError(Exception):
    """The run was over before the fault could happen, or had not begun."""


class CannotError(Exception):
    """The fault cannot be made to happen on this machine; says why."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A run that is going to be disturbed."""

    federation: RealFederation
    out: Path
    study: str
    site: str  # the one that is hit
    moment: float  # seconds from the start of the command, when to hit; later on, when it was
    began: float = 0.0
    run: subprocess.Popen[str] | None = None
    rounds: int = 0  # done when the fault happened
    lasted: float = 0.0  # seconds of the run that the fault takes, however quick the recovery
    said: list[str] = field(default_factory=list)  # by the command
    after: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)  # what to put right when the run is over

    def start(self) -> None:
        """Start the command."""
        self.began = time.monotonic()
        self.run = self.federation.start_run(self.study, self.out)

    def wait(self) -> None:
        """Wait for the moment."""
        time.sleep(max(0.0, self.began + self.moment - time.monotonic()))

    def hit(self) -> None:
        """Note that the fault happens now, if there is a run to disturb."""
        if self._over:
            raise MissedError
        self.moment = time.monotonic() - self.began
        self.rounds = _rounds(self.federation, self.out)

    @property
    def _over(self) -> bool:
        return self.run is None or self.run.poll() is not None

    def kill(self, kind: Kind) -> None:
        """Kill a process as soon as there is one."""
        self.start()
        self.wait()
        while (found := self.federation.find(kind, self.site)) is None and not self._over:
            time.sleep(0.02)
        self.hit()
        if found is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.kill()

    def kill_host(self, name: str) -> None:
        """Kill a hosting process; what it hosts ends by itself."""
        host = self.federation.hosts.pop(name)
        host.kill()
        host.wait()

    def kill_command(self) -> None:
        """Kill `federation run`; it must have begun, else there is nothing to resume."""
        assert self.run is not None
        os.killpg(self.run.pid, signal.SIGKILL)
        self.run.communicate()
        if not (self.out / "checkpoint").exists() and not (self.out / "run.json").exists():
            raise MissedError

    def resume(self) -> None:
        """Go on with the run, unless it was over."""
        if (self.out / "checkpoint").exists():
            self.run = self.federation.spawn("federation", "run", "--resume", self.out, "--json")

    def end(self) -> int:
        """Wait for the run's end; its exit code."""
        assert self.run is not None
        if self.run.stderr is not None and self.run.stderr.closed:  # killed when all was done
            return 0
        try:
            _, errors = self.run.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.run.pid, signal.SIGKILL)
            _, errors = self.run.communicate()
            errors += "\ndid not end"
            name = json.loads((self.out / "checkpoint" / "request.json").read_text())["run"]
            self.federation.command("federation", "abort", name, "--folder", self.federation.fed)
        self.said += errors.splitlines()
        return self.run.returncode


def _rounds(federation: RealFederation, out: Path) -> int:
    """How many rounds the run in a folder has done."""
    try:
        asked = json.loads((out / "checkpoint" / "request.json").read_text())
    except (OSError, ValueError):
        return 0
    with History.open_read(federation.fed / "runs" / asked["run"] / "history.sqlite") as history:
        return len(history.rounds())


# --- faults -----------------------------------------------------------------------------------------------------------


def fault(name: str) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Add a fault to the table."""

    def add(act: Callable[[Stage], None]) -> Callable[[Stage], None]:
        FAULTS[name] = act
        return act

    return add


@fault("site job killed")
def _site_job(stage: Stage) -> None:
    stage.kill("site job")


@fault("site parent killed")
def _site_parent(stage: Stage) -> None:
    stage.kill("site parent")


@fault("server job killed")
def _server_job(stage: Stage) -> None:
    stage.kill("server job")


@fault("server parent killed")
def _server_parent(stage: Stage) -> None:
    stage.kill("server parent")


@fault("conductor killed")
def _conductor(stage: Stage) -> None:
    stage.kill("conductor")


@fault("`site start` killed, started by hand after 3 s")
def _site_host(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.kill_host(stage.site)
    time.sleep(BY_HAND)
    stage.federation.start_site(stage.site)


@fault("`federation start` killed, started by hand after 3 s")
def _server_host(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.kill_host(SERVER)
    time.sleep(BY_HAND)
    stage.federation.start_server()


@fault("`federation run` killed, resumed by hand")
def _command(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.kill_command()
    stage.resume()


@fault("everything killed, started and resumed by hand")
def _everything(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    try:
        stage.kill_command()
    finally:
        for name in list(stage.federation.hosts):
            stage.kill_host(name)
        for process in stage.federation.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        stage.federation.start_server()
        for site in stage.federation.sites:
            stage.federation.start_site(site)
    stage.resume()


@fault("site suspended for 15 to 40 s")
def _suspended(stage: Stage) -> None:
    stage.start()
    stage.wait()
    host = psutil.Process(stage.federation.hosts[stage.site].pid)
    processes = [host, *host.children(recursive=True)]
    stage.hit()
    stage.lasted = random.uniform(15, 40)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        if number == signal.SIGSTOP:
            time.sleep(stage.lasted)


@fault("site starts 20 s after the run")
def _late(stage: Stage) -> None:
    stage.federation.stop_site(stage.site)
    stage.start()
    stage.moment, stage.lasted = 0.0, 20.0
    time.sleep(stage.lasted)
    stage.federation.start_site(stage.site)


@fault('site gone for 60 s, `on_missing = "wait"`')
def _gone(stage: Stage) -> None:
    stage.start()
    stage.wait()
    stage.hit()
    stage.lasted = 60.0
    stage.kill_host(stage.site)
    time.sleep(stage.lasted)
    stage.federation.start_site(stage.site)


@fault("a site's network passes nothing for 30 s, and closes nothing")
def _stalled(stage: Stage) -> None:
    proxy = stage.after.enter_context(proxied(stage.federation, stage.site))
    stage.start()
    stage.wait()
    stage.hit()
    stage.lasted = STALL
    proxy.stall()
    time.sleep(stage.lasted)
    proxy.flow()


@fault("a site's disk full for 20 s, resumed by hand if the run stopped")
def _site_disk(stage: Stage) -> None:
    federation, site = stage.federation, stage.site
    _full_disk(stage, federation.home(site), lambda: federation.stop_site(site), lambda: federation.start_site(site))


@fault("the server's disk full for 20 s, resumed by hand if the run stopped")
def _server_disk(stage: Stage) -> None:
    _full_disk(stage, stage.federation.fed, stage.federation.stop_server, stage.federation.start_server)


def _full_disk(stage: Stage, folder: Path, stop: Callable[[], object], start: Callable[[], object]) -> None:
    if not may_mount():
        raise CannotError("a disk that is full takes root, to mount it")
    disk = SmallDisk(folder)
    for act in (start, disk.unmount, stop):
        stage.after.callback(act)
    stop()
    disk.mount()
    start()
    stage.federation.wait_connected()
    stage.start()
    stage.wait()
    stage.hit()
    stage.lasted = FULL
    disk.fill()
    time.sleep(stage.lasted)
    disk.free()
    assert stage.run is not None
    stage.run.wait(PATIENCE)
    stage.resume()


@fault("a site's clock a day ahead")
def _clock(stage: Stage) -> None:
    library, federation, site = clock_library(), stage.federation, stage.site
    if library is None:
        raise CannotError("a clock that is wrong takes libfaketime (apt-get install faketime)")
    federation.stop_site(site)
    stage.after.callback(federation.start_site, site)
    stage.after.callback(federation.stop_site, site)
    env = {"LD_PRELOAD": str(library), "FAKETIME": AHEAD, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    federation.host(site, sys.executable, "-c", CLOCKED.format(home=str(federation.home(site)), env=env))
    federation.wait_connected()
    stage.moment = 0.0
    stage.start()


@fault('one site of four gone for good, `on_missing = "continue"`')
def gone_for_good(stage: Stage) -> None:
    """The site is hosted again only once the run has ended."""
    stage.start()
    stage.wait()
    stage.hit()
    stage.lasted = TIMEOUT
    stage.federation.stop_site(stage.site)
