"""The command `silograph federation demo`: every command of a federation, on this machine, with real sites."""

import contextlib
import ctypes
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import typer

from silograph._util.files import sha256_of
from silograph._util.naming import another_place
from silograph.datasets import make_silos
from silograph.errors import OutputError, SilosError
from silograph.federation.fingerprints import shown_fingerprint
from silograph.privacy.settings import LEAST_MASKED_SITES

NAMES = ("oslo", "lima", "kyoto", "nairobi", "quito", "hanoi", "tunis", "perth")
N_NODES, N_SAMPLES = 30, 200
GRAPH = "graph.npz"  # not edges.csv: where the rows are, it has partial correlations, too
MARKER, ALONE = ".silograph-demo", "pooled-on-one-machine"
CONNECT_SECONDS = 60.0


def demonstrate(out: Path, *, n_sites: int, force: bool) -> None:
    """Found, join, start, run, compare, show."""
    began = time.monotonic()
    _clear(out, force=force)
    show = _Show(out)
    sites = NAMES[:n_sites]
    show.say("Three sites of made-up signals that share most of their graph" if n_sites == 3 else f"{n_sites} sites")
    _write_tables(out, sites)
    show.say("First, for comparison, as if all tables lay on one machine")
    masked = n_sites >= LEAST_MASKED_SITES
    options = ["--method", "oneshot" if masked else "exact", "--degree", "5", "--standardize"]
    show.run("learn", *(f"{site}.csv" for site in sites), *options, "--out", ALONE)
    _found_federation(show, sites)
    _pin(show, sites)
    show.say("The coordinator writes the study; it names the sites and their keys" if masked else "The study")
    show.run("federation", "study", "--folder", "demo")
    with contextlib.ExitStack() as running:
        running.enter_context(show.start("federation", "start", "--folder", "demo"))
        for site in sites:
            running.enter_context(show.start("site", "start", "--folder", site))
        show.say("The sites connect")
        _wait_for_sites(show, len(sites))
        show.run("federation", "status", "--folder", "demo")
        show.say("Each site approves the study, known by the hash of its file")
        for site in sites:
            show.run("site", "approve", "demo/study.toml", "--yes", "--folder", site)
        show.say("The study runs between the sites")
        show.run("federation", "run", "demo/study.toml", "--folder", "demo", "--out", "run")
    show.say("What left the first site, by its own audit log")
    show.run("site", "log", "--folder", sites[0], "--last", "12")
    for site in sites:
        show.run("site", "log", "--verify", "--folder", site)
    _compare(show, out, sites, shared=not masked)
    show.say(f"Done in {time.monotonic() - began:.0f} s. Everything is in {out}/: run/ has the graphs.")


class _Show:
    """Commands of silograph in the demo's folder, printed before they run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def say(self, text: str) -> None:
        """A headline."""
        typer.secho(f"\n{text}", bold=True)

    def run(self, *arguments: str, visible: bool = True, may_fail: bool = False) -> str:
        """Run a command to its end; shows its output as it comes, or returns it, and then may let it fail."""
        if visible:
            self._print(arguments)
        done = subprocess.run(
            _command(arguments),
            cwd=self.folder,
            text=True,
            stdout=None if visible else subprocess.PIPE,
            stderr=subprocess.DEVNULL if may_fail else None,
        )
        if done.returncode != 0 and not may_fail:
            raise SilosError(f"The demo stopped: `silograph {' '.join(arguments)}` ended with code {done.returncode}.")
        return done.stdout or ""

    @contextlib.contextmanager
    def start(self, *arguments: str) -> Iterator[None]:
        """Run a command beside the others, until the block ends."""
        self._print((*arguments, "&"))
        log = (self.folder / "background.log").open("ab")
        process = subprocess.Popen(
            _command(arguments), cwd=self.folder, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=_end_with_parent,
        )  # fmt: skip
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            log.close()

    def _print(self, arguments: Sequence[str]) -> None:
        typer.secho(f"$ silograph {' '.join(arguments)}", fg="green")


def _end_with_parent() -> None:
    """If the demo is killed, nothing of it stays."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "silograph", *arguments]


def _clear(out: Path, *, force: bool) -> None:
    if out.exists() and any(out.iterdir()):
        if not force:
            raise OutputError(f"{out}: exists already. {another_place()}")
        if not (out / MARKER).exists():
            raise OutputError(
                f"{out}: holds other things than a demo, so --force leaves it alone. Choose another --out."
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARKER).write_text("Made by `silograph federation demo`.\n", encoding="utf-8")


def _write_tables(out: Path, sites: Sequence[str]) -> None:
    made = make_silos(n_silos=len(sites), n_nodes=N_NODES, n_samples=N_SAMPLES, seed=0)
    names = [f"region_{k:02d}" for k in range(N_NODES)]
    for site, signals in zip(sites, made.signals.values(), strict=True):
        np.savetxt(out / f"{site}.csv", signals, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    (out / "nodes.txt").write_text("\n".join(names) + "\n", encoding="utf-8")


def _found_federation(show: _Show, sites: Sequence[str]) -> None:
    show.say("The consortium's engineer founds a federation")
    port = str(_free_port())
    show.run(
        "federation", "new", "demo", "--server", "localhost", "--port", port, "--nodes", "nodes.txt", "--sites", *sites
    )
    for site in sites:
        show.say(f"{site} asks to join, is approved, and joins")
        show.run("site", "request", "demo/demo.invite", "--site", site)
        show.run("federation", "approve", f"{site}/{site}.request.zip", "--folder", "demo")
        show.run("site", "join", f"{site}.signed.zip", "--data", f"{site}.csv")


def _pin(show: _Show, sites: Sequence[str]) -> None:
    """Each site's people ask the others for their fingerprints; here, the demo stands for the telephone."""
    show.say("Each site pins the others' keys, whose fingerprints they tell each other by telephone")
    keys = {}
    for site in sites:
        keys[site] = json.loads(show.run("site", "pin", "--json", "--folder", site, visible=False))["keys"][site]
    for site in sites:
        for other in sites:
            if other != site:
                show.run("site", "pin", other, shown_fingerprint(keys[other]), "--folder", site)


def _wait_for_sites(show: _Show, n_sites: int) -> None:
    deadline = time.monotonic() + CONNECT_SECONDS
    while time.monotonic() < deadline:
        ask = ("federation", "status", "--quick", "--json", "--folder", "demo")
        status = show.run(*ask, visible=False, may_fail=True)  # while the server comes up, it does not answer
        if status.count('"connected": true') == n_sites:
            return
        time.sleep(0.5)
    raise SilosError(f"The demo stopped: the sites did not connect. See {show.folder}/*/logs/.")


def _compare(show: _Show, out: Path, sites: Sequence[str], *, shared: bool) -> None:
    show.say("The same to the last bit as on one machine?" + " Each site's own graph has stayed there" * (not shared))
    _tell_same(out, "run/consensus", "consensus")
    for site in sites:
        own = f"run/silos/{site}" if shared else str(next(out.glob(f"{site}/results/*/silos/{site}")).relative_to(out))
        _tell_same(out, own, f"silos/{site}")


def _tell_same(out: Path, there: str, alone: str) -> None:
    first, second = (sha256_of(out / part / GRAPH)[:16] for part in (there, f"{ALONE}/{alone}"))
    typer.echo(f"{there}/{GRAPH}  {first}…  {'identical' if first == second else f'DIFFERENT: {second}…'}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
