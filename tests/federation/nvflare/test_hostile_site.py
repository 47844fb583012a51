"""An enrolled site turns hostile: it can neither end a run, nor pose as the server, nor fill the server's memory.

The hostile site is a fourth one. As a stranger to the study it runs `testing/hostile_site.py` with its own kit.
"""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import psutil
import pytest

pytest.importorskip("nvflare")

from silograph.federation.coordinator.history import History
from testing import hostile_site
from testing.consortium import SITES
from testing.real_federation import RealFederation, study_text
from testing.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

LEARN = 'method = "algorithm1"\nrounds = 400\nalpha = 0.5\nbeta = 0.25'
QUICK = 'method = "exact"\nrounds = 4\nalpha = 0.5\nbeta = 0.25'
HOSTILE, VICTIM = "quito", "lima"
POSED = ["says that it comes from 'server'"] * 3
DROPPED = {  # attack → what the server's log says of it
    "abort the run": ["asks for 'abort' on 'server_command' of 'server.JOB'"],
    "call a site's job dead": ["asks for 'handle_dead_job' on 'server_command' of 'server.JOB'"],
    "say goodbye for the server": ["asks for 'bye' on 'cellnet.channel' of 'server.JOB'"],
    "call the job finished": ["asks for 'update_run_status' on 'server_parent_listener' of 'server'"],
    "pose as the server with an older token": POSED,
    "pose as the server with its current token": POSED,
    "pose as the server with the server's token": POSED,
    "be connected to": ["is for 'lima'"],
}


@pytest.fixture(scope="module")
def fed(tmp_path_factory) -> Iterator[RealFederation]:
    with RealFederation(tmp_path_factory.mktemp("fed"), sites=(*SITES, HOSTILE)) as made:
        made.stop_site(HOSTILE)
        yield made


def running_job(fed: RealFederation) -> str:
    """The job of the only run, once it has done some rounds."""
    found: list[str] = []

    def begun() -> bool:
        histories = list((fed.fed / "runs").glob("*/history.sqlite"))
        if not histories:
            return False
        with History.open_read(histories[0]) as history:
            found[:] = [event.reason or "" for event in history.events() if event.kind == "started"]
            return len(history.rounds()) >= 3

    eventually(begun)
    return found[0]


def test_a_hostile_site_cannot_end_a_run_nor_pose_as_the_server_and_the_log_names_it(fed, tmp_path):
    text = study_text(LEARN, sites=json.dumps(list(SITES)))
    run = fed.start_run(text, tmp_path / "out")
    program = [sys.executable, hostile_site.__file__, str(fed.home(HOSTILE) / "kit"), running_job(fed), VICTIM]
    hostile = subprocess.run([*program, *DROPPED], text=True, capture_output=True, timeout=PATIENCE)
    assert hostile.returncode == 0, hostile.stderr
    assert hostile.stdout == "nobody connected\nanswers: []\n"
    out, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode in (0, 3), errors
    assert json.loads(out)["federation"]["attempts"] == 1, errors
    fed.assert_conforms(tmp_path / "out", text, SITES)
    logged = re.findall(rf"dropped a message from {HOSTILE}: it (.*)\.", (fed.fed / "logs" / "nvflare.log").read_text())
    named = [re.sub(r"server\.[0-9a-f-]{36}", "server.JOB", one) for one in logged]
    assert sorted(named) == sorted(chain.from_iterable(DROPPED.values()))


FLOOD = """
import os, sys, threading, time

def work():
    while "silograph.federation.site.service" not in sys.modules:
        time.sleep(0.05)
    import numpy as np
    from silograph.federation.nvflare import executor
    from silograph.federation.nvflare.transport import DATA
    honest = executor.SiteExecutor._reply

    def reply(self, topic, request, fl_ctx):
        answer = honest(self, topic, request, fl_ctx)
        if b'"kind":"round"' in request[DATA][:1000]:
            answer[DATA] = bytes(200_000_000) if os.environ["FLOOD"] == "bytes" else np.zeros(25_000_000)
        return answer

    executor.SiteExecutor._reply = reply

if "site_job" in sys.orig_argv:
    threading.Thread(target=work, daemon=True).start()
"""
HOST = """
import json, pathlib, sys
from silograph.federation.nvflare.hosting import host_site
host_site(pathlib.Path(sys.argv[1]), environment=json.loads(sys.argv[2]))
"""


@contextlib.contextmanager
def flooding(fed: RealFederation, kind: str, folder: Path) -> Iterator[None]:
    """The hostile site answers every round with 200 MB of this kind, for as long as the block lasts."""
    (folder / "sitecustomize.py").write_text(FLOOD)
    arguments = [str(fed.home(HOSTILE)), json.dumps({"PYTHONPATH": str(folder), "FLOOD": kind})]
    hostile = subprocess.Popen([sys.executable, "-c", HOST, *arguments], stdout=subprocess.DEVNULL)
    try:
        fed.wait_connected()
        yield
    finally:
        hostile.terminate()
        hostile.wait(60)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("bytes", r"sent 3 answers that were not believed: message: expected at most 1\d{6} bytes, got more"),
        ("array", "has not answered for 30 s"),  # what NVFlare would fetch while it reads the answer
    ],
)
def test_a_site_that_answers_200_mb_is_left_out_and_the_server_does_not_read_them(fed, tmp_path, kind, reason):
    text = study_text(QUICK, 'on_missing = "continue"\ntimeout = 30', name=f"flood of {kind}")
    with flooding(fed, kind, tmp_path):
        run, sizes = fed.start_run(text, tmp_path / "out"), [0]
        while run.poll() is None:
            for process in filter(None, (fed.find("server job"), fed.find("server parent"))):
                with contextlib.suppress(psutil.Error):
                    sizes.append(process.memory_info().rss)
            time.sleep(0.05)
        out, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode in (0, 3), errors
    assert re.fullmatch(reason, json.loads(out)["federation"]["left_out"][HOSTILE])
    assert max(sizes) < 400_000_000
    fed.assert_conforms(tmp_path / "out", text, SITES)
