"""The same bits on NVFlare's simulator: its processes and messages, but no kits, no TLS and no supervisor.

The simulator has no folder for each site, so the workspace says where they are (`local/silograph.json`), and keys that
a kit would bring are made here. One job of it conducts many runs, because a job costs more than a run.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

pytest.importorskip("nvflare")

from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun
from silograph.federation.folders import POINTER_FILE
from silograph.federation.identity import Signer
from silograph.federation.nvflare.jobs import write_job
from silograph.federation.nvflare.policy import SERVER_CLASSES, SITE_CLASSES
from silograph.federation.site.audit import verify
from testing.conformance import METHODS, assert_conforms, every_method
from testing.consortium import NODES, SITES, Consortium, as_data

pytestmark = pytest.mark.federation

LONGEST = 600.0  # seconds of a simulation
# NVFlare gives each site's process a free port and lets go of it, seconds before the process takes it: two sites may be
# given the same one, and any connection of the others may come in between. So ports come from a range that the
# operating system gives to nobody, each once.
SIMULATE = """
import os, socket, sys
from nvflare.private.fed.app.simulator import simulator_runner

def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) != 0

start = 10_000 + 100 * (os.getpid() % 200)
ports = filter(is_free, range(start, start + 2_000))
simulator_runner.get_open_ports = lambda number: [next(ports) for _ in range(number)]
job, workspace, sites = sys.argv[1:]
runner = simulator_runner.SimulatorRunner(job, workspace, clients=sites, threads=sites.count(",") + 1, max_clients=100)
sys.exit(runner.run())
"""


def give_identities(consortium: Consortium) -> None:
    """Write keys and certificates to where kits have them."""
    homes = {site: consortium.folder / site / "kit" for site in consortium.sites}
    for site, home in homes.items():
        _write_identity(home / "startup", "client", consortium.signers[site], consortium.authority.root)
    on_file = consortium.folder / "sites"
    on_file.mkdir()
    for site, signer in consortium.signers.items():
        (on_file / f"{site}.crt").write_bytes(signer.certificate)
    startup = consortium.folder / "server" / "startup"
    _write_identity(startup, "server", consortium.server, consortium.authority.root)


def _write_identity(startup: Path, name: str, signer: Signer, root: bytes) -> None:
    startup.mkdir(parents=True)
    certificate, key = as_data(signer)
    for file, data in ((f"{name}.crt", certificate), (f"{name}.key", key), ("rootCA.pem", root)):
        (startup / file).write_bytes(data)


def make_workspace(folder: Path, consortium: Consortium) -> Path:
    """A simulator's workspace that allows our two classes only, and knows where everybody's folder is."""
    (folder / "local").mkdir(parents=True)
    allowed = {"class_list_enforcement_mode": "enforce", "class_allow_list": [*SERVER_CLASSES, *SITE_CLASSES]}
    (folder / "local" / "resources.json").write_text(json.dumps({"format_version": 2, **allowed}))
    homes = {"server": consortium.folder} | {site: consortium.folder / site for site in consortium.sites}
    (folder / "local" / POINTER_FILE).write_text(json.dumps({name: str(home) for name, home in homes.items()}))
    return folder


def simulate(consortium: Consortium, runs: Sequence[CoordinatorRun], folder: Path) -> int:
    """Conduct the runs in one job of the simulator; the most bytes that its processes had together."""
    give_identities(consortium)
    workspace = make_workspace(folder / "workspace", consortium)
    job = write_job(folder / "job", name="silograph", runs=[run.name for run in runs], sites=consortium.sites)
    arguments = [str(job), str(workspace), ",".join(consortium.sites)]
    with (folder / "simulator.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SIMULATE, *arguments], cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
        try:
            most = watch(process)
        finally:
            end_group(process)
    assert process.returncode == 0, (folder / "simulator.log").read_text()[-3000:]
    return most


def watch(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; the most bytes that it and its children had together, memory they share counted once."""
    end, most = time.monotonic() + LONGEST, 0
    while process.poll() is None:
        assert time.monotonic() < end, "waited in vain"
        most = max(most, memory(process.pid))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
    return most


def memory(pid: int) -> int:
    total = 0
    try:
        for one in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            total += one.memory_full_info().pss
    except (psutil.Error, AttributeError):  # ended meanwhile; or not on Linux
        return 0
    return total


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End all that may be left: the sites' processes are in the group of the simulator."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def assert_done(consortium: Consortium, run: CoordinatorRun) -> None:
    outcome = run.outcome()
    assert outcome is not None
    assert outcome.ended == "done", outcome
    assert_conforms(run, consortium.tables)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> tuple[Consortium, dict[str, CoordinatorRun]]:
    """Every method, conducted by one job."""
    folder = tmp_path_factory.mktemp("simulated")
    consortium = Consortium(folder / "consortium", sites=SITES)
    runs = {method: consortium.run(method) for method in METHODS}
    simulate(consortium, list(runs.values()), folder)
    return consortium, runs


@every_method
def test_every_method_gives_the_same_bits_on_the_simulator(simulated, method):
    consortium, runs = simulated
    assert_done(consortium, runs[method])


def test_the_simulated_sites_keep_their_logs_and_their_graphs(simulated):
    consortium, runs = simulated
    for site in SITES:
        verdict = verify(consortium.folder / site / "audit.jsonl")
        assert verdict.problem is None
        assert verdict.entries > len(METHODS)
        kept = {path.name for path in (consortium.folder / site / "results").iterdir()}
        assert kept == {run.run_id for run in runs.values()}


def test_twenty_sites_complete_fifty_rounds(tmp_path, capsys):
    sites = [f"site-{number:02d}" for number in range(20)]
    consortium = Consortium(tmp_path / "consortium", sites=sites)
    run = consortium.run('method = "algorithm1"\nrounds = 50\nalpha = 0.5\nbeta = 0.25')
    began = time.monotonic()
    most = simulate(consortium, [run], tmp_path)
    seconds = time.monotonic() - began
    assert_done(consortium, run)
    with History.open_read(run.history) as history:
        rounds = [one for one in history.rounds() if one.stage == "learn"]
        troubles = [event for event in history.events() if event.kind not in ("started", "finished")]
    assert [one.round for one in rounds] == list(range(1, 53))  # before and after the 50, one more each
    assert not troubles
    with capsys.disabled():
        each = sum(one.seconds for one in rounds) / len(rounds)
        print(
            f"\n20 simulated sites, 50 rounds, {len(NODES)} nodes: {seconds:.0f} s, {each * 1000:.0f} ms a round, "
            f"at most {most / 1e9:.2f} GB in all processes"
        )
