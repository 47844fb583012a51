"""An enrolled site turns hostile: with its own kit it can neither end a run nor pose as the server.

The study is of three sites; the hostile one is the fourth. `testing/hostile_site.py` is what it runs.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain

import pytest

pytest.importorskip("nvflare")

from silograph.federation.coordinator.history import History
from testing import hostile_site
from testing.consortium import SITES
from testing.real_federation import RealFederation, study_text
from testing.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

LEARN = 'method = "algorithm1"\nrounds = 400\nalpha = 0.5\nbeta = 0.25'
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
    logged = re.findall(rf"dropped a message from {HOSTILE}: it (.*)\.", (fed.fed / "logs" / "server.log").read_text())
    named = [re.sub(r"server\.[0-9a-f-]{36}", "server.JOB", one) for one in logged]
    assert sorted(named) == sorted(chain.from_iterable(DROPPED.values()))
