"""What can be said of hosting without a server that runs."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("nvflare")

from silograph.errors import ParameterError, SilosError
from silograph.federation.folders import FederationFolder, Kit
from silograph.federation.invitation import Invitation, write_invitation
from silograph.federation.nvflare import hosting
from silograph.federation.nvflare.hosting import host_server, host_site
from silograph.federation.nvflare.systemd import systemd_unit
from testing.real_federation import free_port

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_the_hosts_give_no_python_path_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from silograph.federation.nvflare.hosting import _environment

    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert not {"PYTHONPATH", "SECRET_TOKEN"} & set(_environment(None))
    assert _environment({"PYTHONPATH": "chosen"})["PYTHONPATH"] == "chosen"


def test_numeric_libraries_are_told_what_they_are_told_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which processor OpenBLAS takes for granted decides last bits, and graphs are promised to the last bit."""
    from silograph.federation.nvflare.hosting import _environment

    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert _environment(None)["OPENBLAS_CORETYPE"] == "Haswell"


def test_what_has_no_kit_is_not_hosted(tmp_path: Path) -> None:
    with pytest.raises(SilosError, match="silograph site join"):
        host_site(tmp_path)
    with pytest.raises(SilosError, match="silograph federation new"):
        host_server(tmp_path)


def hosted(folder: Path, *command: str, **more: Any) -> hosting.Hosted:
    """A process of one's own choice, hosted as the server's would be."""
    (folder / "kit").mkdir(exist_ok=True)
    command = command or (sys.executable, "-c", "import time; time.sleep(60)")
    logs = (folder / "server.log", folder / "nvflare.log")
    kit, watch = Kit(folder / "kit", "server"), more.pop("watch", hosting.LogWatch)
    return hosting.Hosted("The server", folder, kit, *logs, command, {}, watch, **more)


def test_a_process_that_reads_the_table_ends_with_its_sites_host(tmp_path: Path) -> None:
    """It was begun by a job that is over, and is nobody's child."""
    one = hosted(tmp_path)
    module, kit = "silograph.federation.site.reading", str(one.kit.path)
    with subprocess.Popen([*one.command, "-m", module, kit], start_new_session=True) as reader:
        hosting._end_leftovers(one)
        assert reader.poll() is not None


class Unending:
    """A host that is to end once it has said something so often."""

    def __init__(self, words: str, times: int = 1) -> None:
        self.said, self.end, self._words, self._left = list[str](), threading.Event(), words, times

    def __call__(self, line: str) -> None:
        self.said.append(line)
        self._left -= self._words in line
        if self._left == 0:
            self.end.set()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[[hosting.Hosted, Unending], None]:
    """Host something until it has said its words."""

    def run(one: hosting.Hosted, say: Unending) -> None:
        monkeypatch.setattr(hosting, "_ending", lambda: nullcontext(say.end))
        monkeypatch.setattr(hosting, "_FIRST_WAIT", 0.05)
        guard = threading.Timer(60, say.end.set)
        guard.start()
        hosting._host(one, say)
        guard.cancel()

    return run


def test_a_process_that_cannot_be_started_is_told_and_tried_again(tmp_path, host, monkeypatch) -> None:
    def busy(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    say = Unending("conductor cannot be started ([Errno 11] Resource temporarily unavailable). It is tried again.", 3)
    monkeypatch.setattr(subprocess, "Popen", busy)
    one = hosted(tmp_path)
    host(replace(one, beside=replace(one, name="The conductor")), say)
    assert sum("The server cannot be started" in line for line in say.said) >= 2
    assert say.said[-1].endswith("The server has ended.")


def test_a_keeper_that_fails_takes_the_server_with_it(tmp_path, host, monkeypatch) -> None:
    class Failing(hosting.LogWatch):
        def look(self) -> None:
            raise ZeroDivisionError("what nobody thought of")

    say, traced = Unending("never said"), list[str]()
    monkeypatch.setattr(threading, "excepthook", lambda about: traced.append(about.exc_type.__name__))
    one = hosted(tmp_path)
    host(replace(one, beside=replace(one, name="The conductor", watch=Failing)), say)
    assert any("The conductor cannot be kept running (ZeroDivisionError: what" in line for line in say.said)
    assert traced == ["ZeroDivisionError"]


def test_a_process_of_another_account_that_names_the_kit_is_let_be(tmp_path, monkeypatch) -> None:
    def denied(process: psutil.Process) -> None:
        raise psutil.AccessDenied(process.pid)

    one, began = hosted(tmp_path), time.monotonic()
    with subprocess.Popen([*one.command, "nvflare.x", str(one.kit.path)]) as other:
        with monkeypatch.context() as strange:
            strange.setattr(psutil.Process, "terminate", denied)
            strange.setattr(psutil.Process, "kill", denied)
            hosting._end_leftovers(one)
        assert other.poll() is None
        assert time.monotonic() - began < hosting._END_SECONDS
        other.kill()


def test_a_process_goes_on_though_the_terminal_is_gone(tmp_path, host) -> None:
    """It prints more than a pipe holds, and ends well only if all of it is read."""

    class Talking(hosting.LogWatch):
        def keeps(self, line: str) -> bool:
            self._log.say(line)
            return True

    class Gone(Unending):
        def __call__(self, line: str) -> None:
            super().__call__(line)
            raise BrokenPipeError

    one = hosted(tmp_path, sys.executable, "-c", "for number in range(20000): print('line', number)", watch=Talking)
    say = Gone("ended unexpectedly (code 0)")
    host(one, say)
    assert any("line 19999" in line for line in say.said)
    assert "line 19999" in "".join(path.read_text() for path in tmp_path.glob("server.log*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_for_the_log_is_no_matter(tmp_path, capfd) -> None:
    with hosting._logger(tmp_path / "server.log") as logger:
        (handler,) = logger.handlers
        handler.stream.close()
        handler.stream = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")  # which the handler closes
        for number in range(20000):
            logger.info(f"line {number}")
    assert capfd.readouterr().err == ""


# --- the port ---------------------------------------------------------------------------------------------------------


def federation(folder: Path, server: str, port: int) -> FederationFolder:
    about = Invitation(name="test", server=server, port=port, sites=("lima", "oslo"), fingerprint="0" * 64)
    write_invitation(FederationFolder(folder).about, about)
    return FederationFolder(folder)


@pytest.mark.parametrize("server", ["localhost", "coord.example.org"])
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_at_which_another_program_listens_is_named(tmp_path, monkeypatch, server: str, address: str) -> None:
    monkeypatch.setattr(hosting, "_PORT_SECONDS", 0.2)
    with socket.create_server((address, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SilosError, match=f"Another program listens at port {port},"):
            hosting._check_port(federation(tmp_path, server, port))
    hosting._check_port(federation(tmp_path, server, port))


def test_a_server_of_ours_that_nobody_hosts_is_ended_before_the_port_is_looked_at(tmp_path, host) -> None:
    port, about = free_port(), tmp_path / "federation"
    about.mkdir()
    one = hosted(tmp_path, check=lambda: hosting._check_port(federation(about, "localhost", port)))
    listen = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); print(flush=True); time.sleep(60)"
    command = [sys.executable, "-c", listen, "nvflare.x", str(one.kit.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        host(one, Unending("The server starts."))
        assert left.poll() is not None


def test_a_unit_restarts_always_and_may_write_its_folder_only(tmp_path: Path) -> None:
    unit = systemd_unit("site", tmp_path)
    for line in ("Restart=always", "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes"):
        assert line in unit.splitlines()
    assert f'ReadWritePaths="{tmp_path}"' in unit
    assert f'-m silograph site start --folder "{tmp_path}"' in unit
    assert "federation start" in systemd_unit("server", tmp_path)
    with pytest.raises(ParameterError):
        systemd_unit("both", tmp_path)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze: apt-get install systemd")
@pytest.mark.parametrize("kind", ["server", "site"])
def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "of a hospital, 100% ours"
    folder.mkdir()
    unit = tmp_path / "silograph-test.service"
    unit.write_text(systemd_unit(kind, folder))
    verify = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    assert "Unknown key" in subprocess.run(verify, capture_output=True, text=True, check=False).stderr
