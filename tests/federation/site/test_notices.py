"""What a site's host tells of studies and runs; and the program that is called when a study waits."""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from silograph._util.terminal import visible
from silograph.errors import SilographError
from silograph.federation.folders import SiteFolder
from silograph.federation.site.approvals import Approvals, sha_of
from silograph.federation.site.data import look_at_data
from silograph.federation.site.notices import Runs, Unreadable, Waiting
from silograph.federation.site.on_pending import call
from silograph.federation.site.reading import note_read
from silograph.federation.site.settings import read_site
from silograph.federation.site.unreadable import known_problem
from testing.consortium import Consortium, Loopback, approve, close
from testing.waiting import eventually

HOSTILE = "\x1b[31m\n~!touch ran\n$(touch ran); `touch ran`"  # who asks; a study's name has no such characters
STUDY = 'name = "stress 7"\nnodes = ["a", "b"]\n'
SCRIPT = """
import json, os, sys
told = {name: value for name, value in os.environ.items() if name.startswith("SILOGRAPH_")}
with open("told.jsonl", "a") as file:
    file.write(json.dumps({"told": told, "text": sys.stdin.read(), "arguments": sys.argv[1:]}) + "\\n")
"""


@pytest.fixture
def site(tmp_path: Path) -> SiteFolder:
    Consortium(tmp_path, sites=("oslo",), approve_all=False)
    return SiteFolder(tmp_path / "oslo")


def name_program(site: SiteFolder, *program: str) -> None:
    text = site.settings.read_text()
    assert "on_pending = []" in text
    site.settings.write_text(text.replace("on_pending = []", f"on_pending = {json.dumps(program)}"))


def wait(site: SiteFolder, study: str = STUDY) -> str:
    sha = sha_of(study.encode())
    assert Approvals(site.path).note_pending(sha, study, asked_by=HOSTILE)
    return sha


def test_a_study_that_waits_is_told_once_with_the_command_to_read_it(site: SiteFolder) -> None:
    said = list[str]()
    waiting = Waiting(site, said.append)
    waiting.look()
    assert said == []
    sha = wait(site)
    for _ in range(3):
        waiting.look()
    (line,) = said
    assert f"silograph site approve {sha} --folder {site.path}" in line
    Approvals(site.path).reject(sha)
    waiting.look()
    wait(site)
    waiting.look()
    assert len(said) == 2  # it was rejected, and asked for again


def test_what_is_wrong_with_the_data_is_told_once_for_each_version_that_has_it(site: SiteFolder) -> None:
    settings, said = read_site(site.path), list[str]()
    table, notice = settings.data_in(site.path)[0], Unreadable(site, said.append)
    notice.look()
    table.write_text(table.read_text().rstrip("\n").rpartition(",")[0] + ",1x2\n")
    bad = look_at_data(settings, site.path).version
    note_read(site, bad, "table.csv, row 41, column 'a': expected a number\nMend it.")
    for _ in range(3):
        notice.look()
    eventually(lambda: said, 30)
    assert said == [
        "The data cannot be read, so that no study can be answered: table.csv, row 41, column 'a': expected a number "
        "Mend it."
    ]
    table.write_text(table.read_text().replace("1x2", "1"))
    assert known_problem(site) is None


def test_the_program_gets_the_study_as_data_and_only_once(site: SiteFolder, tmp_path: Path) -> None:
    script = tmp_path / "tell.py"
    script.write_text(SCRIPT)
    name_program(site, sys.executable, str(script), "steward@example.org")
    sha, told, said = wait(site), site.path / "told.jsonl", list[str]()
    for _ in range(2):  # the host was started anew
        waiting = Waiting(site, said.append)
        waiting.look()
        waiting.look()
    eventually(told.exists, 30)
    time.sleep(0.5)  # for a second call, which may not come
    (call,) = [json.loads(line) for line in told.read_text().splitlines()]
    assert call["arguments"] == ["steward@example.org"]
    assert call["told"]["SILOGRAPH_STUDY_SHA256"] == sha
    assert call["told"]["SILOGRAPH_STUDY_NAME"] == "stress 7"
    assert call["told"]["SILOGRAPH_ASKED_BY"] == visible(HOSTILE)
    assert call["told"]["SILOGRAPH_STUDY_FILE"] == str(site.pending / f"{sha}.toml")
    assert f"Asked for by: {visible(HOSTILE)}, " in call["text"]
    assert re.search(r", \d{4}-\d\d-\d\d \d\d:\d\d UTC\n", call["text"])
    assert call["text"].endswith(f"silograph site approve {sha} --folder {site.path}\n")
    assert not [line for line in call["text"].splitlines() if line.startswith(("~", "$", "`"))]
    assert not list(tmp_path.rglob("ran"))


def test_a_program_is_called_as_soon_as_the_file_that_names_it_can_be_read(site: SiteFolder) -> None:
    name_program(site, sys.executable, "-c", "open('called', 'w')")
    text, said = site.settings.read_text(), list[str]()
    site.settings.write_text("nonsense")
    wait(site)
    waiting = Waiting(site, said.append)
    for _ in range(2):
        with pytest.raises(SilographError, match=r"site\.toml"):
            waiting.look()
    assert len(said) == 1  # of the study; the host says the error
    site.settings.write_text(text)
    waiting.look()
    eventually((site.path / "called").exists, 30)


def pending(site: SiteFolder):
    wait(site)
    return Approvals(site.path).pending()[0]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (("/nowhere/tell",), "/nowhere/tell cannot be called (No such file or directory)"),
        ((sys.executable, "-c", "print('no \x1b[31mmail'); exit(3)"), "failed with code 3: no"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "took longer than 0.5 s and was ended"),
    ],
)
def test_a_program_that_fails_is_told_and_does_no_harm(site: SiteFolder, program: tuple[str, ...], words: str) -> None:
    said = list[str]()
    call(program, site, pending(site), "x", said.append, seconds=0.5)
    (line,) = said
    assert words in line


@pytest.mark.parametrize("ends", ["exit 0", "sleep 60"])
def test_what_a_program_leaves_running_is_not_waited_for(site: SiteFolder, ends: str) -> None:
    said, began = list[str](), time.monotonic()
    call(("sh", "-c", f"setsid sleep 20 & {ends}"), site, pending(site), "x", said.append, seconds=1.0)
    assert time.monotonic() - began < 15
    assert len(said) == (ends != "exit 0")


def test_of_all_that_a_program_prints_the_end_is_told(site: SiteFolder) -> None:
    said = list[str]()
    call(("sh", "-c", "yes long | head -c 300000; echo the end; exit 3"), site, pending(site), "x", said.append)
    assert said[0].endswith("long\\nthe end" if "\\n" in said[0] else "long\nthe end")
    assert len(said[0]) < 500


def test_the_program_gets_no_secrets_of_the_environment(site: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    said = list[str]()
    call((sys.executable, "-c", "import os; print(sorted(os.environ)); exit(1)"), site, pending(site), "x", said.append)
    assert "SECRET_TOKEN" not in said[0]
    assert "PATH" in said[0]


# --- runs -------------------------------------------------------------------------------------------------------------


def test_a_run_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    consortium = Consortium(tmp_path, approve_all=False)
    site, said = SiteFolder(tmp_path / "oslo"), list[str]()
    runs = Runs(site, said.append)
    run = consortium.run()
    for name in consortium.sites:
        approve(tmp_path / name, run.study().text)
    seen = list[int]()

    def watched(site: str, data: bytes, service):
        answer = service(data)
        runs.look()
        seen.append(len(said))
        return answer

    transport = Loopback(consortium.services(), tamper=watched)
    assert consortium.run_attempt(run, transport).ended == "done"
    close(transport.services)
    runs.look()
    began, ended = said
    assert began.startswith("Run ")
    assert f" began: the study 'test', {run.study().sha256}." in began
    assert ended.endswith(f"has ended. Its graphs are in {next(site.results.iterdir())}.")
    assert 1 in seen  # it was told before the end


def test_a_run_that_stops_before_its_end_and_goes_on_is_told(tmp_path: Path) -> None:
    consortium = Consortium(tmp_path)
    site, said = SiteFolder(tmp_path / "oslo"), list[str]()
    runs, run = Runs(site, said.append), consortium.run()
    asked = 0

    def killed(name: str, data: bytes, service):
        nonlocal asked
        asked += 1
        if asked > 9:
            raise KeyboardInterrupt
        return service(data)

    transport = Loopback(consortium.services(), tamper=killed)
    with pytest.raises(KeyboardInterrupt):
        consortium.run_attempt(run, transport)
    runs.look()
    close(transport.services)
    runs.look()
    consortium.finish(run)
    runs.look()
    said = [line.split(":")[0].split(" ", 2)[2].split(".")[0] for line in said]
    assert said == ["began", "has stopped here before its end", "goes on", "has ended"]


def test_a_refusal_is_told_once_with_its_reason(tmp_path: Path) -> None:
    consortium = Consortium(tmp_path, min_samples=500)
    site, said = SiteFolder(tmp_path / "oslo"), list[str]()
    runs, run = Runs(site, said.append), consortium.run()
    transport = Loopback(consortium.services())
    for attempt in "ab":
        consortium.run_attempt(run, transport, attempt=attempt)
    close(transport.services)
    runs.look()
    (line,) = said
    assert "samples (not sent: " in line


def test_requests_from_before_the_host_began_are_not_told(tmp_path: Path) -> None:
    consortium = Consortium(tmp_path)
    consortium.finish(consortium.run())
    said = list[str]()
    Runs(SiteFolder(tmp_path / "oslo"), said.append).look()
    assert said == []
    assert (tmp_path / "oslo" / "audit.jsonl").stat().st_size > 0
