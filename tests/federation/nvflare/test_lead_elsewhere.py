"""The lead on a machine of its own: the server conducts, whatever happens to laptop, conductor and server."""

import json
import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from silograph.errors import SilosError
from silograph.federation.coordinator.history import History
from silograph.federation.nvflare.reach import REACH_SECONDS
from silograph.federation.nvflare.session import conductor_session
from silograph.federation.study_file import read_study
from testing.real_federation import RealFederation, study_text
from testing.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

QUICK = 'method = "exact"\nrounds = 6\nalpha = 0.5\nbeta = 0.25'
MANY = 'method = "algorithm1"\nrounds = 300\nalpha = 0.5\nbeta = 0.25'
SAID_WITHIN = 5.0  # seconds


@pytest.fixture
def laptop(fed, tmp_path) -> Path:
    return fed.laptop(tmp_path / "laptop")


def write_study(laptop: Path, fed: RealFederation, learn: str) -> tuple[Path, str]:
    """A study of its own for each test: sites answer only so many rounds of one."""
    text = study_text(learn, nodes=json.dumps(fed.nodes), name=laptop.parent.name).replace(
        'nodes = "nodes.txt"\n', "", 1
    )
    (laptop / "study.toml").write_text(text)
    return laptop / "study.toml", text


def begin(laptop: Path, fed: RealFederation, learn: str, out: Path) -> tuple[subprocess.Popen[str], str, str]:
    """A run, once it has done some rounds: the command, the run's name, the study."""
    study, text = write_study(laptop, fed, learn)
    process = fed.spawn("federation", "run", study, "--out", out, "--json", "--folder", laptop)
    request = out / "checkpoint" / "request.json"
    eventually(lambda: process.poll() is not None or request.exists())
    assert process.poll() is None, process.communicate()
    name = json.loads(request.read_text())["run"]
    eventually(lambda: rounds(fed, name) > 3)
    return process, name, text


def rounds(fed: RealFederation, name: str) -> int:
    with History.open_read(fed.fed / "runs" / name / "history.sqlite") as history:
        return len(history.rounds())


def state(fed: RealFederation, laptop: Path, name: str) -> str:
    done = fed.command("federation", "runs", "--json", "--folder", laptop)
    return {run["run"]: run["state"] for run in json.loads(done.stdout)}.get(name, "gone")


def test_a_machine_with_the_leads_kit_alone_runs_a_study_to_the_same_bits(fed, laptop, tmp_path):
    assert {path.name for path in laptop.iterdir()} == {"lead", "federation.json"}
    study, text = write_study(laptop, fed, QUICK)
    out = tmp_path / "run"
    done = fed.command("federation", "run", study, "--out", out, "--report", "--folder", laptop, code=None)
    assert done.returncode in (0, 3), done.stderr
    fed.assert_conforms(out, text)
    assert (out / "report.html").is_file()
    assert "Round" in done.stderr  # without a terminal: a line for each event


def test_a_command_that_is_killed_loses_nothing_and_another_machine_looks_on(fed, laptop, tmp_path):
    process, name, text = begin(laptop, fed, MANY, tmp_path / "run")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    other = fed.laptop(tmp_path / "other")
    shutil.move(tmp_path / "run", other / "run")
    shutil.rmtree(laptop)
    done = fed.command("federation", "run", "--resume", other / "run", "--folder", other, "--json", code=None)
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout)["federation"]["run"] == name
    assert json.loads(done.stdout)["federation"]["attempts"] == 1
    fed.assert_conforms(other / "run", text)


def test_a_conductor_that_is_killed_goes_on_with_the_job_that_is_at_work(fed, laptop, tmp_path):
    process, _, text = begin(laptop, fed, MANY, tmp_path / "run")
    before = fed.kill("conductor")
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 3), errors
    assert json.loads(out)["federation"]["attempts"] == 1
    fed.assert_conforms(tmp_path / "run", text)
    eventually(lambda: fed.find("conductor") is not None)
    assert fed.find("conductor").pid != before


def test_a_server_that_is_stopped_and_started_goes_on_with_its_runs(fed, laptop, tmp_path):
    process, _, text = begin(laptop, fed, MANY, tmp_path / "run")
    fed.stop_server()
    fed.start_server()
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 3), errors
    assert json.loads(out)["federation"]["attempts"] > 1
    fed.assert_conforms(tmp_path / "run", text)
    fed.wait_connected()


def test_a_laptop_that_sleeps_finds_the_run_done(fed, laptop, tmp_path):
    process, name, text = begin(laptop, fed, MANY, tmp_path / "run")
    process.send_signal(signal.SIGSTOP)
    eventually(lambda: (fed.fed / "runs" / name / "results" / "run.json").exists())
    process.send_signal(signal.SIGCONT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, 3), errors
    fed.assert_conforms(tmp_path / "run", text)


def test_a_run_is_given_up_taken_up_again_and_forgotten(fed, laptop, tmp_path):
    process, name, text = begin(laptop, fed, MANY, tmp_path / "run")
    fed.command("federation", "abort", name, "--folder", laptop)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "The run was given up." in errors
    assert state(fed, laptop, name) == "abandoned"
    eventually(lambda: fed.find("server job") is None and fed.find("site job") is None)
    done = fed.command("federation", "run", "--resume", tmp_path / "run", "--json", code=None)
    assert done.returncode in (0, 3), done.stderr
    fed.assert_conforms(tmp_path / "run", text)
    assert state(fed, laptop, name) == "done"
    fed.command("federation", "forget", name, "--yes", "--folder", laptop)
    assert state(fed, laptop, name) == "gone"
    assert not (fed.fed / "runs" / name).exists()


def test_a_study_that_the_server_refuses_leaves_nothing_behind(fed, laptop, tmp_path):
    study, _ = write_study(laptop, fed, QUICK)
    study.write_text('sites = ["kyoto", "paris"]\n' + study.read_text())
    done = fed.command("federation", "run", study, "--out", tmp_path / "run", "--folder", laptop, code=2)
    assert "paris are not of this federation" in done.stderr
    assert not (tmp_path / "run").exists()


def test_the_lead_writes_a_study_with_the_keys_that_the_server_knows(fed, laptop):
    shutil.copyfile(fed.fed / "nodes.txt", laptop / "nodes.txt")
    fed.command("federation", "study", "--folder", laptop)
    study, _ = read_study(laptop / "study.toml")
    assert study.keys == fed.keys


def test_only_the_lead_may_ask_the_desk(fed):
    with conductor_session(fed.fed) as session:
        with pytest.raises(SilosError, match="The server refuses conductor@"):
            session.ask("status")
        assert session.connected().keys() == set(fed.sites)  # what it is for


@pytest.mark.parametrize("how", ["stopped", "asleep"])
def test_a_server_that_does_not_answer_is_said_soon(fed, laptop, how):
    """By the processor's time that it takes, as this machine may be busy, and all that it may wait for the network."""
    if how == "stopped":
        fed.stop_server()
    else:
        asleep = fed.find("server parent")
        asleep.suspend()
    try:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = fed.command("federation", "status", "--folder", laptop, code=1)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert f"The server at localhost:{fed.port} does not answer" in done.stderr
        computed = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert computed + 2 * REACH_SECONDS < SAID_WITHIN
    finally:
        if how == "stopped":
            fed.start_server()
        else:
            asleep.resume()
        fed.wait_connected()
