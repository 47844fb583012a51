"""A federation that really runs on this machine, founded, joined, started and used by the commands people type.

Every site and the server is hosted by a process group of its own; `close` ends all of it, also after a failure. Where
it can (Linux, started from the main thread), hosts end by themselves when the process that started them is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import psutil

from silograph.federation.site.pins import Pins
from silograph.federation.study_file import parse_study
from testing.conformance import assert_same_result, learned_here
from testing.consortium import NODES, SITES, write_table
from testing.waiting import PATIENCE, eventually

NAME, SERVER = "test", "server"
ENDING = 30.0  # seconds for a host to end what it hosts
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None

Kind = Literal["site job", "site parent", "server job", "server parent", "conductor"]
# The argument that follows `-m silograph.federation.nvflare.hardened`
KINDS: dict[str, str] = {
    "site job": "site_job", "site parent": "site", "server job": "server_job", "server parent": "server",
}  # fmt: skip


class RealFederation:
    """A server and sites on loopback, in one folder.

        FOLDER/test/             the federation's folder, with the studies that were run
        FOLDER/SITE/             a site's folder          FOLDER/SITE.csv     its table, of the nodes `NODES`
        FOLDER/NAME.log          what a host printed

    `join` are options for `site join` at every site, `also` more of them at single sites. With `patients`, a site has
    the folder FOLDER/tables/SITE/ of so many tables instead. With `pin`, all sites pin each other's keys.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sites: Sequence[str] = SITES,
        join: Sequence[str] = ("--approve-all",),
        also: Mapping[str, Sequence[str]] | None = None,
        make_table: Callable[[Path, int], object] = write_table,
        nodes: Sequence[str] = NODES,
        patients: Mapping[str, int] | None = None,
        pin: bool = True,
        start: bool = True,
    ) -> None:
        self.patients = dict(patients or {})
        self.folder, self.sites, self.port = folder.resolve(), tuple(sites), free_port()
        self.nodes = tuple(nodes)
        self.fed = self.folder / NAME
        self.hosts: dict[str, subprocess.Popen[bytes]] = {}
        self._spawned: list[subprocess.Popen[str]] = []
        self._joins: dict[str, int] = {}  # how often each site had joined when it was last started
        self._studies = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        for seed, site in enumerate(self.sites):
            if site not in self.patients:
                make_table(self.table(site), seed)
            for number in range(self.patients.get(site, 0)):
                self.table(site).mkdir(parents=True, exist_ok=True)
                make_table(self.table(site) / f"private-{site}-{number}.csv", 100 * seed + number)
        (self.folder / "nodes.txt").write_text("\n".join(self.nodes) + "\n")
        try:
            self._found()
            if start:
                self.start_server()  # which takes a while to come up
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda site: self._join(site, (*join, *(also or {}).get(site, ()))), self.sites))
            if pin:
                self.pin()
            if start:
                self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RealFederation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- where things are --------------------------------------------------------------------------------------------

    def table(self, site: str) -> Path:
        return self.folder / "tables" / site if site in self.patients else self.folder / f"{site}.csv"

    @property
    def tables(self) -> dict[str, Path]:
        return {site: self.table(site) for site in self.sites}

    def home(self, site: str) -> Path:
        return self.folder / site

    @property
    def keys(self) -> dict[str, str]:
        """The fingerprint of each site's key, as the site itself tells it."""
        return {site: Pins(self.home(site)).own()[site] for site in self.sites}

    def pin(self) -> None:
        """Let every site pin all keys. By the function: a command for each pair would take as long as all the rest."""
        keys = self.keys
        for site in self.sites:
            for other, key in keys.items():
                Pins(self.home(site)).set(other, key, by="the test")

    def masked_text(self, learn: str = 'method = "oneshot"', policy: str = "", *, privacy: str = "", **top: str) -> str:
        """A study of all sites with one masked sum; `learn`, `policy` and `top` as of `study_text`."""
        top = {"sites": json.dumps(self.sites), "share_graphs": "false", **top}
        keys = "\n".join(f'{site} = "{key}"' for site, key in self.keys.items())
        return study_text(learn, policy, **top) + f'[privacy]\nsums = "masked"\n{privacy}\n[keys]\n{keys}\n'

    def assert_conforms(self, results: Path, text: str, sites: Sequence[str] | None = None) -> None:
        """A study's results are just what learning in this process from these sites' tables gives; or from all."""
        study, sites = parse_study(text.encode(), source="study"), self.sites if sites is None else sites
        learned = learned_here(study, self.nodes, {site: self.table(site) for site in sites})
        assert_same_result(results, learned, self.nodes, sites, shared=sites if study.share_graphs else ())

    # --- commands ----------------------------------------------------------------------------------------------------

    def command(
        self, *arguments: str | Path, code: int | None = 0, seconds: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run `silograph ARGUMENTS` in the folder to its end; it must end with this code, unless that is None."""
        words = [str(one) for one in arguments]
        done = subprocess.run(_command(words), cwd=self.folder, text=True, capture_output=True, timeout=seconds)
        told = f"silograph {' '.join(words)}: code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert code is None or done.returncode == code, told
        return done

    def laptop(self, folder: Path) -> Path:
        """The lead's machine: its kit, and what the federation is, and nothing else."""
        shutil.copytree(self.fed / "lead", folder / "lead")
        shutil.copyfile(self.fed / "federation.json", folder / "federation.json")
        return folder

    def write_study(self, text: str) -> Path:
        """A new study file in the federation's folder, beside its `nodes.txt`."""
        self._studies += 1
        path = self.fed / f"study-{self._studies}.toml"
        path.write_text(text)
        return path

    def run(self, study_text: str, out: Path, *extra: str) -> dict[str, Any]:
        """`federation run` to its end, which must be a good one (or one above the tolerance); the run's record."""
        study = self.write_study(study_text)
        done = self.command("federation", "run", study, "--out", out, "--json", *extra, "--folder", self.fed, code=None)
        assert done.returncode in (0, 3), done.stderr
        return dict(json.loads(done.stdout))

    def resume(self, out: Path) -> dict[str, Any]:
        """`federation run --resume` to its end, which must be a good one; the run's record."""
        done = self.command("federation", "run", "--resume", out, "--json", code=None)
        assert done.returncode in (0, 3), done.stderr
        return dict(json.loads(done.stdout))

    def start_run(self, study_text: str, out: Path, *extra: str) -> subprocess.Popen[str]:
        """`federation run` beside this process, in a process group of its own; its errors and notes go to a pipe."""
        study = self.write_study(study_text)
        return self.spawn("federation", "run", study, "--out", out, "--json", *extra, "--folder", self.fed)

    def spawn(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Any command beside this process, in a process group of its own."""
        process = subprocess.Popen(
            _command([str(one) for one in arguments]), cwd=self.folder, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_ending_with_us(),
        )  # fmt: skip
        self._spawned.append(process)
        return process

    def status(self, *, quick: bool = True) -> dict[str, Any]:
        """What `federation status --json` prints."""
        options = ["--quick"] if quick else []
        done = self.command("federation", "status", *options, "--json", "--folder", self.fed, code=None)
        return dict(json.loads(done.stdout))  # also of a server that does not answer, of which the code is 1

    # --- hosts -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server and all sites that are not running, and wait until all are connected."""
        if SERVER not in self.hosts:
            self.start_server()
        for site in self.sites:
            if site not in self.hosts:
                self.start_site(site)
        self.wait_connected()

    def host(self, name: str, *command: str) -> None:
        """Let this command host a site, or the server, until it is stopped."""
        assert name not in self.hosts, f"{name} is hosted already"
        if name != SERVER:
            self._joins[name] = self._joined(name)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.hosts[name] = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, start_new_session=True, preexec_fn=_ending_with_us()
            )

    def start_server(self) -> None:
        self.host(SERVER, *_command(["federation", "start", "--folder", str(self.fed)]))

    def start_site(self, site: str) -> None:
        self.host(site, *_command(["site", "start", "--folder", str(self.home(site))]))

    def stop_server(self) -> None:
        self._stop(SERVER)

    def stop_site(self, site: str) -> None:
        """End a site as its engineer does, and wait until it has ended."""
        self._stop(site)

    def wait_connected(self, sites: Sequence[str] | None = None, seconds: float = PATIENCE) -> None:
        """Wait until `federation status --quick` shows these sites, or all, as connected."""
        wanted = set(self.sites if sites is None else sites)
        with contextlib.suppress(AssertionError):  # to look into the log is quicker than to ask by a command
            eventually(
                lambda: all(self._joined(site) > self._joins.get(site, -1) for site in wanted), min(seconds, 60.0)
            )
        eventually(
            lambda: wanted <= {one["site"] for one in self.status()["sites"] if one["connected"]}, seconds, every=0.3
        )

    def find(self, kind: Kind, site: str | None = None) -> psutil.Process | None:
        """The process of this kind, of the first site unless another is named; None if it does not run."""
        host = self.hosts.get(site or self.sites[0] if kind.startswith("site") else SERVER)
        if host is None or host.poll() is not None:
            return None
        for process in _children(host.pid):
            with contextlib.suppress(psutil.Error):
                if _is(process.cmdline(), kind) and process.status() != psutil.STATUS_ZOMBIE:
                    return process
        return None

    def kill(self, kind: Kind, site: str | None = None, *, number: int = signal.SIGKILL, seconds: float = 60.0) -> int:
        """Send SIGKILL, or another signal, to the process of this kind as soon as there is one; its pid."""
        found: list[psutil.Process] = []
        eventually(lambda: bool(found.extend(filter(None, [self.find(kind, site)])) or found), seconds)
        found[0].send_signal(number)
        return found[0].pid

    def processes(self) -> list[psutil.Process]:
        """All that runs on the kits of this federation, jobs included."""
        ours = (self.fed / "server", self.fed / "conductor", *(self.home(site) / "kit" for site in self.sites))
        kits = set(map(str, ours))
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if kits & set(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def close(self) -> None:
        """End all that was started; raise nothing."""
        for process in self._spawned:
            if process.poll() is None:
                process.kill()
            process.communicate()  # closes the pipes
        self._spawned.clear()
        for host in self.hosts.values():
            with contextlib.suppress(ProcessLookupError):
                host.send_signal(signal.SIGCONT)  # one that is stopped would not end
                host.terminate()
        for name in list(self.hosts):
            self._stop(name)
        for left in self.processes():
            with contextlib.suppress(psutil.Error):
                left.kill()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _found(self) -> None:
        options = ["--server", "localhost", "--port", str(self.port), "--nodes", "nodes.txt"]
        self.command("federation", "new", NAME, *options, "--sites", *self.sites)

    def _join(self, site: str, options: Sequence[str]) -> None:
        self.command("site", "request", f"{NAME}/{NAME}.invite", "--site", site)
        self.command("federation", "approve", f"{site}/{site}.request.zip", "--folder", NAME)
        self.command("site", "join", f"{site}.signed.zip", "--data", self.table(site), *options)

    def _joined(self, site: str) -> int:
        """How often a site has joined, by what NVFlare prints at the server."""
        log = self.fed / "logs" / "nvflare.log"
        return log.read_text().count(f"New client {site}@") if log.exists() else 0

    def _connected(self) -> set[str]:
        return {one["site"] for one in self.status()["sites"] if one["connected"]}

    def _stop(self, name: str) -> None:
        host = self.hosts.pop(name)
        started = _children(host.pid) if host.poll() is None else []
        host.terminate()
        try:
            host.wait(ENDING)
        except subprocess.TimeoutExpired:
            for process in started:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(host.pid, signal.SIGKILL)
            host.wait()


def study_text(learn: str, policy: str = "", *, name: str = "test", **top: str) -> str:
    """A study file: `learn` and `policy` are lines of TOML, `top` gives more entries above them, as TOML too."""
    lines = [f'name = "{name}"', 'nodes = "nodes.txt"', *(f"{key} = {value}" for key, value in top.items())]
    return "\n".join([*lines, "[learn]", learn, "[policy]", policy]) + "\n"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "silograph", *arguments]


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _is(arguments: Sequence[str], kind: str) -> bool:
    if kind == "conductor":
        return "silograph.federation.nvflare.conductor" in arguments
    ours = [place for place, argument in enumerate(arguments) if argument == "silograph.federation.nvflare.hardened"]
    return any(arguments[place + 1 : place + 2] == [KINDS[kind]] for place in ours)


def _ending_with_us() -> Callable[[], object] | None:
    """For a new process: get SIGTERM when the thread that started it ends, so only for the main thread."""
    if _LIBC is None or threading.current_thread() is not threading.main_thread():
        return None
    return lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
