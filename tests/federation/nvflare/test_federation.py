"""A federation that really runs, used by the commands: the same bits as in one process, and errors people can act on.

A site reads its `site.toml` when a job begins, so tests change a site's limits there, and put them back.
"""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun, new_run
from silograph.federation.site.audit import entries, verify
from silograph.federation.study_file import read_study
from silograph.federation.versions import VERSION
from testing.conformance import ALGORITHM1, DITTO, METHODS, every_method
from testing.consortium import SITES, write_table
from testing.real_federation import RealFederation, study_text
from testing.waiting import PATIENCE, eventually, eventually_says

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

EXACT = 'method = "exact"\nrounds = 6\nalpha = 0.5\nbeta = 0.25'
MANY = 'method = "algorithm1"\nrounds = 400\nalpha = 0.5\nbeta = 0.25'  # rounds enough to be stopped in the midst


@contextlib.contextmanager
def changed(fed: RealFederation, site: str, **lines: str) -> Iterator[None]:
    """Other settings in a site's `site.toml`, as TOML, for as long as the block lasts."""
    path = fed.home(site) / "site.toml"
    before = text = path.read_text()
    for key, value in lines.items():
        text, found = re.subn(rf"(?m)^(# )?{key} = .*$", f"{key} = {value}", text)
        assert found == 1, key
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def run_of(fed: RealFederation, out: Path) -> Path:
    """The folder of the run that will be written to `out`."""
    asked = json.loads((out / "checkpoint" / "request.json").read_text())
    return fed.fed / "runs" / asked["run"]


def n_rounds(run: Path) -> int:
    with History.open_read(run / "history.sqlite") as history:
        return sum(one.stage == "learn" for one in history.rounds())


def shown(fed: RealFederation, run: Path) -> dict[str, object]:
    """A run as `federation status` tells it."""
    return {one["run"]: one for one in fed.status()["runs"]}[run.name]


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Code, output and complaints of a command that was started."""
    out, complaints = process.communicate(timeout=PATIENCE)
    return process.returncode, out, complaints


# --- the same bits ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conducted(fed: RealFederation) -> dict[str, CoordinatorRun]:
    """Every method, one run each, conducted by one job: a job costs more than a run."""
    from silograph.federation.nvflare.session import lead_session

    runs = {}
    for method in METHODS:
        study, nodes = read_study(fed.write_study(study_text(method)))
        runs[method] = new_run(fed.fed / "runs", study, nodes, SITES)
    with lead_session(fed.fed) as lead:
        job = lead.submit([run.name for run in runs.values()], SITES)
        eventually(lambda: lead.state(job) == "ended", every=0.3)
    return runs


@every_method
def test_every_method_gives_the_same_bits_between_real_sites(fed, conducted, method):
    outcome = conducted[method].outcome()
    assert outcome is not None
    assert outcome.ended == "done", outcome
    fed.assert_conforms(conducted[method].folder / "results", study_text(method))


@pytest.mark.parametrize("method", [ALGORITHM1, DITTO, METHODS[0]], ids=["algorithm1", "ditto", "exact, degree"])
def test_other_methods_by_the_command_too(fed, tmp_path, method):
    fed.run(study_text(method), tmp_path / "run")
    fed.assert_conforms(tmp_path / "run", study_text(method))


def test_a_study_may_name_some_of_the_sites(fed, tmp_path):
    text = study_text(EXACT, sites='["kyoto", "oslo"]')
    record = fed.run(text, tmp_path / "run")
    assert [silo["name"] for silo in record["silos"]] == ["kyoto", "oslo"]
    fed.assert_conforms(tmp_path / "run", text, ("kyoto", "oslo"))


def test_a_site_that_keeps_its_graph_and_numbers_sends_neither(fed, tmp_path):
    with changed(fed, "lima", report="false", share_graph="false"):
        record = fed.run(study_text(EXACT), tmp_path / "run")
    told = {silo["name"]: (silo["graph_shared"], silo["n_samples"], silo["edges"]) for silo in record["silos"]}
    assert told["lima"] == (False, None, None)
    assert all(told[site][0] and told[site][1] == 40 for site in ("kyoto", "oslo"))
    assert {path.name for path in (tmp_path / "run" / "silos").iterdir()} == {"kyoto", "oslo"}


# --- approval ---------------------------------------------------------------------------------------------------------


def test_a_study_waits_for_approval_and_goes_on_by_itself(fed, tmp_path):
    text = study_text(EXACT, name="to be approved")
    with changed(fed, "lima", approve_all="false"):
        process = fed.start_run(text, tmp_path / "run")
        eventually(lambda: process.poll() is not None or list(fed.home("lima").glob("pending/*.toml")))
        assert process.poll() is None, ended(process)
        listed = fed.command("site", "approve", "--folder", fed.home("lima")).stdout
        sha = re.search(r"silograph site approve ([0-9a-f]{64})", listed)
        assert sha is not None, listed
        status = {one["run"]: one for one in fed.status()["runs"]}[run_of(fed, tmp_path / "run").name]
        assert (status["round"], status["study"]) == (None, "to be approved")
        eventually(lambda: shown(fed, run_of(fed, tmp_path / "run"))["why"] == "the approval of lima")
        fed.command("site", "approve", sha[1], "--yes", "--folder", fed.home("lima"))
        code, out, complaints = ended(process)
    assert code in (0, 3), complaints
    assert "lima: waits for approval; its engineer approves with `silograph site approve`." in complaints
    assert complaints.count("lima: waits") == 1
    about = json.loads(out)["federation"]
    assert about["attempts"] == 1
    assert about["times"]["approval"] > 0
    assert about["times"]["total"] == pytest.approx(sum(about["times"].values()) / 2, abs=0.01)
    fed.assert_conforms(tmp_path / "run", text)
    asked = list(entries(fed.home("lima") / "audit.jsonl"))
    codes = [entry.get("code") for entry in asked]
    assert "unapproved" in codes
    assert [entry["detail"][:6] for entry in asked if entry["what"] == "approved"] == ["study "]


def test_an_approval_that_is_taken_back_ends_the_run_which_goes_on_once_it_is_given_again(fed, tmp_path):
    text = study_text(MANY, name="to be revoked")
    study = fed.write_study(text)
    with changed(fed, "lima", approve_all="false"):
        fed.command("site", "approve", study, "--yes", "--folder", fed.home("lima"))
        process = fed.start_run(text, tmp_path / "run")
        eventually((tmp_path / "run" / "checkpoint" / "request.json").exists)
        run = run_of(fed, tmp_path / "run")
        eventually(lambda: n_rounds(run) > 2)
        fed.command("site", "approve", study, "--revoke", "--folder", fed.home("lima"))
        code, _, complaints = ended(process)
        assert code == 1, complaints
        assert "lima: its engineer has taken back the approval of this study" in complaints
        assert n_rounds(run) < 400
        fed.command("site", "approve", study, "--yes", "--folder", fed.home("lima"))
        assert fed.resume(tmp_path / "run")["resumed"] is True
    fed.assert_conforms(tmp_path / "run", text)


# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(fed: RealFederation, out: Path, text: str, site: str, reason: str) -> None:
    """A run that ends with code 1, names site and reason, and leaves nothing but what `--resume` needs."""
    study = fed.write_study(text)
    done = fed.command("federation", "run", study, "--out", out, "--folder", fed.fed, code=1)
    assert f"{site}: {reason}" in done.stderr
    again = f"The run is kept: when that is cured, go on with: silograph federation run --resume {out}"
    assert again in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [path.name for path in out.iterdir()] == ["checkpoint"]
    assert [path.name for path in (out / "checkpoint").iterdir()] == ["request.json"]


def test_a_method_that_a_site_does_not_allow_is_refused_by_name(fed, tmp_path):
    with changed(fed, "oslo", methods='["fedavg", "pooled"]'):
        refused(fed, tmp_path / "run", study_text(EXACT), "oslo", "does not allow this method")


def test_other_nodes_are_refused_by_name_and_the_run_goes_on_with_the_right_ones(fed, tmp_path):
    write_table(fed.home("lima") / "other.csv", 0, nodes=[f"area {k}" for k in range(8)])
    with changed(fed, "lima", data='"other.csv"'):
        refused(fed, tmp_path / "run", study_text(EXACT), "lima", "its data do not have the nodes of this study")
    assert fed.resume(tmp_path / "run")["resumed"] is False  # no round had been written
    fed.assert_conforms(tmp_path / "run", study_text(EXACT))
    last = [entry for entry in entries(fed.home("lima") / "audit.jsonl") if entry.get("code") == "nodes"]
    assert "area 0" in last[-1]["detail"]  # the site's own engineer is told which


def test_too_few_samples_are_refused_by_name(fed, tmp_path):
    with changed(fed, "kyoto", min_samples="41"):
        reason = "its data have fewer samples than it allows"
        refused(fed, tmp_path / "run", study_text(EXACT), "kyoto", reason)


def test_a_table_that_is_gone_is_refused_by_name_and_its_path_stays_at_the_site(fed, tmp_path):
    with changed(fed, "kyoto", data='"/nowhere/secret-place.csv"'):
        refused(fed, tmp_path / "run", study_text(EXACT), "kyoto", "its data cannot be read, or do not fit the study")
    left = [path for path in (fed.fed / "runs").rglob("*") if path.is_file() and b"secret-place" in path.read_bytes()]
    assert not left
    assert not [log for log in (fed.fed / "logs").iterdir() if "secret-place" in log.read_text()]


def test_rounds_beyond_a_sites_limit_are_refused_before_the_first_and_in_the_midst(fed, tmp_path):
    with changed(fed, "oslo", max_rounds="2"):
        refused(fed, tmp_path / "first", study_text(ALGORITHM1), "oslo", "has answered as many rounds as it allows")
    text = study_text('method = "exact"\ntol = 1e-9\nalpha = 0.5\nbeta = 0.25', name="rounds in the midst")
    with changed(fed, "oslo", max_rounds="5"):  # three of them for set-up
        refused(fed, tmp_path / "midst", text, "oslo", "has answered as many rounds as it allows")
    assert n_rounds(run_of(fed, tmp_path / "midst")) > 0
    assert fed.resume(tmp_path / "midst")["resumed"] is True
    fed.assert_conforms(tmp_path / "midst", text)


# --- stopped, and gone on ---------------------------------------------------------------------------------------------


def test_a_run_goes_on_when_nobody_looks_on_any_more(fed, tmp_path):
    text, out = study_text(MANY), tmp_path / "run"
    process = fed.start_run(text, out)
    eventually((out / "checkpoint" / "request.json").exists)
    run = run_of(fed, out)
    eventually(lambda: n_rounds(run) > 3)
    during = shown(fed, run)
    assert during["state"] == "running"
    assert during["round"] >= 3
    process.send_signal(signal.SIGINT)
    code, printed, complaints = ended(process)
    assert code == 130, complaints
    assert f"Look on again with: silograph federation run --resume {out}" in complaints
    assert f"To stop it: silograph federation abort {run.name}" in complaints
    assert printed == ""
    assert [path.name for path in out.iterdir()] == ["checkpoint"]
    eventually(lambda: shown(fed, run)["state"] == "done", every=1.0)
    record = fed.resume(out)
    assert record["federation"]["attempts"] == 1
    fed.assert_conforms(out, text)
    again = fed.command("federation", "run", "--resume", out)
    assert "this run is finished, there was nothing to resume" in again.stderr
    after = shown(fed, run)
    assert (after["state"], after["stage"], after["round"]) == ("done", "learn", record["result"]["rounds"])


def test_a_study_that_says_stop_names_the_site_that_is_away_and_goes_on_when_it_is_back(fed, tmp_path):
    text, out = study_text(EXACT, 'on_missing = "stop"\ntimeout = 30'), tmp_path / "run"
    fed.stop_site("oslo")
    try:
        study = fed.write_study(text)
        done = fed.command("federation", "run", study, "--out", out, "--folder", fed.fed, code=1)
        assert "oslo: was not connected for 30 s. The study says to stop then." in done.stderr
        assert "oslo is not connected; waiting for it." in done.stderr
        assert not [site for site in ("kyoto", "lima") if f"{site}: was not" in done.stderr]
        assert [path.name for path in out.iterdir()] == ["checkpoint"]
        sites = {one["site"]: one for one in fed.status()["sites"]}
        assert [site for site in SITES if sites[site]["connected"]] == ["kyoto", "lima"]
    finally:
        fed.start_site("oslo")
    fed.wait_connected()
    fed.resume(out)
    fed.assert_conforms(out, text)


def test_a_study_that_says_continue_is_learned_from_the_sites_that_are_left(fed, tmp_path):
    text, out = study_text(EXACT, 'on_missing = "continue"\ntimeout = 30'), tmp_path / "run"
    fed.stop_site("oslo")
    try:
        record = fed.run(text, out)
    finally:
        fed.start_site("oslo")
    fed.wait_connected()
    assert record["federation"]["left_out"] == {"oslo": "was not connected for 30 s"}
    fed.assert_conforms(out, text, ("kyoto", "lima"))


def test_a_server_that_is_away_is_waited_for_and_asked_for(fed, tmp_path):
    text, out = study_text(EXACT, 'on_missing = "stop"\ntimeout = 90'), tmp_path / "run"
    fed.stop_server()
    try:
        process = fed.start_run(text, out)
        said = eventually_says(process, "does not answer: nothing listens at port")
        assert "Start it there: silograph federation start. Waiting for it; what was begun there goes on." in said
    finally:
        fed.start_server()
    code, _, complaints = ended(process)
    assert code in (0, 3), complaints
    fed.assert_conforms(out, text)
    fed.wait_connected()


# --- a hostile site ---------------------------------------------------------------------------------------------------


MOLE = """
import os, pathlib, sys, threading, time

def work():
    while "silograph.federation.site.service" not in sys.modules:
        time.sleep(0.05)
    from nvflare.apis.shareable import Shareable
    from silograph.federation.envelope import SignedMessage
    from silograph.federation.identity import read_signer
    from silograph.federation.nvflare import executor
    from silograph.federation.nvflare.transport import DATA, TOPIC
    startup = pathlib.Path(os.environ["STARTUP"])
    signer = read_signer(startup / "client.crt", startup / "client.key")
    honest, asked, done = executor.SiteExecutor._reply, [], threading.Event()

    def reply(self, topic, request, fl_ctx):
        asked.append(request[DATA])
        if len(asked) == 2:  # every site has answered the greeting, so the other one is up
            own, _ = SignedMessage({"kind": "status"}, b"", signer).to("lima")
            threading.Thread(target=tell, args=(fl_ctx.get_engine(), [own, request[DATA]])).start()
            done.wait(60)  # the run goes on when all is told
        return honest(self, topic, request, fl_ctx)

    def tell(engine, messages):
        told = []
        for data in messages:
            message = Shareable()
            message[DATA] = data
            with engine.new_context() as context:
                replies = engine.send_aux_request(
                    targets=["lima"], topic=TOPIC, request=message, timeout=3.0, fl_ctx=context
                )
            told.append(replies["lima"].get_return_code())
        pathlib.Path(os.environ["MOLE"]).write_text("\\n".join(told))
        done.set()

    executor.SiteExecutor._reply = reply

if "site_job" in sys.orig_argv:
    threading.Thread(target=work, daemon=True).start()
"""
HOST = """
import json, pathlib, sys
from silograph.federation.nvflare.hosting import host_site
host_site(pathlib.Path(sys.argv[1]), environment=json.loads(sys.argv[2]))
"""


def test_no_site_can_make_another_answer_over_the_network_either(fed, tmp_path):
    """From inside a site's process of a job, to the other site's process of that job: the server brings it nothing."""
    (tmp_path / "sitecustomize.py").write_text(MOLE)
    startup = fed.home("kyoto") / "kit" / "startup"
    environment = {"PYTHONPATH": str(tmp_path), "MOLE": str(tmp_path / "told"), "STARTUP": str(startup)}
    before = len(list(entries(fed.home("lima") / "audit.jsonl")))
    fed.stop_site("kyoto")
    arguments = [str(fed.home("kyoto")), json.dumps(environment)]
    hostile = subprocess.Popen([sys.executable, "-c", HOST, *arguments], stdout=subprocess.DEVNULL)
    try:
        fed.wait_connected()
        fed.run(study_text(EXACT), tmp_path / "run")
    finally:
        hostile.terminate()
        hostile.wait(60)
        fed.start_site("kyoto")
    fed.wait_connected()
    assert (tmp_path / "told").read_text().splitlines() == ["TIMEOUT", "TIMEOUT"]
    log = (fed.fed / "logs" / "nvflare.log").read_text()
    assert len(re.findall(r"dropped a message from kyoto: it is for 'lima\.[0-9a-f-]{36}'\.", log)) >= 2
    new = list(entries(fed.home("lima") / "audit.jsonl"))[before:]
    assert new
    assert not [entry for entry in new if entry.get("code") == "not-coordinator"]


# --- what people see afterwards ---------------------------------------------------------------------------------------


def test_the_status_tells_of_sites_and_runs(fed, conducted):
    status = fed.status(quick=False)
    assert status["federation"] == "test"
    address = f"localhost:{fed.port}"
    assert status["server"] == {"address": address, "answers": True, "why": "", "version": VERSION}
    for site in status["sites"]:
        assert site["joined"]
        assert site["connected"]
        assert time.time() - site["last_seen"] < 60
        assert site["data"] == "ready"
        assert site["version"]
    runs = {run["run"]: run for run in status["runs"]}
    for run in conducted.values():
        assert runs[run.name]["state"] == "done"
        assert runs[run.name]["sites"] == list(SITES)


def test_afterwards_every_log_is_unbroken_and_tells_what_left(fed, conducted):
    for site in SITES:
        told = fed.command("site", "log", "--verify", "--folder", fed.home(site)).stdout
        verdict = verify(fed.home(site) / "audit.jsonl")
        assert f"{verdict.entries} entries, unbroken" in told
        found = list(entries(fed.home(site) / "audit.jsonl"))
        rounds = [entry for entry in found if entry["what"] == "answered" and "round" in entry]
        assert len(rounds) > len(METHODS)
        assert all(entry["left"] and entry["bytes_sent"] > 0 for entry in rounds)
        assert not (fed.home(site) / "errors.log").exists()
