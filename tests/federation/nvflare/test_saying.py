"""What a site and the server say while real processes come, die and come back; all of it as people see it."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from silograph.federation.folders import FederationFolder, SiteFolder
from testing.real_federation import RealFederation, free_port, study_text
from testing.tls import Authority
from testing.waiting import PATIENCE, eventually

pytestmark = pytest.mark.federation
NOTICED = 60.0  # seconds, on a busy machine; on one that is not, some 15
MAIL = "import os, sys; open('mails', 'a').write(os.environ['SILOGRAPH_STUDY_SHA256'] + sys.stdin.read()[:0] + '\\n')"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealFederation]:
    with RealFederation(tmp_path_factory.mktemp("fed"), sites=("kyoto", "oslo"), join=(), start=False) as made:
        yield made
    assert not made.processes()


def said(fed: RealFederation, name: str) -> str:
    """What a host printed, and its log holds to the letter."""
    return (fed.folder / f"{name}.log").read_text()


def says(fed: RealFederation, name: str, text: str, within: float = PATIENCE) -> None:
    eventually(lambda: text in said(fed, name), within)


def lead_to(fed: RealFederation, site: str, port: int) -> None:
    """Let a site look for the server at another port, as if it had been told the wrong one."""
    folder = SiteFolder(fed.home(site))
    for path in (folder.invitation, folder.kit.config):
        text = re.sub(r'("port": |localhost:)\d+', rf"\g<1>{port}", path.read_text())
        path.write_text(text)


def last(fed: RealFederation, site: str) -> str:
    return said(fed, site).splitlines()[-1].split(" UTC  ", 1)[-1]


def test_a_site_with_the_wrong_port_says_so_and_connects_with_the_right_one(fed: RealFederation) -> None:
    wrong = free_port()
    lead_to(fed, "oslo", wrong)
    fed.start_server()
    says(fed, "server", f"Listening at port {fed.port}.")
    fed.start_site("oslo")
    says(fed, "oslo", f"Not connected to localhost:{wrong}: nothing listens at port {wrong} of localhost.")
    report = fed.command("site", "doctor", "--quick", "--folder", fed.home("oslo"), code=1).stdout
    assert re.search(rf"wrong +server's port +nothing listens at port {wrong} of localhost\n +→ ", report)
    time.sleep(6)  # another try, of which nothing is said
    assert said(fed, "oslo").count("nothing listens") == 1
    fed.stop_site("oslo")
    lead_to(fed, "oslo", fed.port)
    fed.start_site("oslo")
    says(fed, "oslo", f"Connected to localhost:{fed.port}.")
    status = json.loads(fed.command("site", "status", "--json", "--folder", fed.home("oslo")).stdout)
    assert status["connection"]["state"] == "connected"
    assert abs(status["connection"]["clock"]) < 5
    assert status["connection"]["version"] == status["versions"]["silograph"]
    fed.command("site", "doctor", "--folder", fed.home("oslo"))


def test_a_server_that_is_killed_is_away_and_comes_back(fed: RealFederation) -> None:
    fed.hosts["server"].kill()  # its processes end by themselves
    fed.hosts.pop("server").wait()
    says(fed, "oslo", f"The server localhost:{fed.port} is away since ", NOTICED)
    assert "nothing listens at port" in last(fed, "oslo")
    fed.start_server()
    says(fed, "oslo", f"Connected again to localhost:{fed.port}.")
    says(fed, "server", "Site oslo connected from 127.0.0.1, silograph ")


def test_a_server_that_falls_silent_is_noticed(fed: RealFederation) -> None:
    before = said(fed, "oslo").count("is away since")
    process = fed.find("server parent")
    assert process is not None
    process.suspend()
    try:
        eventually(lambda: said(fed, "oslo").count("is away since") > before, NOTICED)
        assert "takes connections, and then does not answer" in last(fed, "oslo")
    finally:
        process.resume()
    eventually(lambda: last(fed, "oslo").startswith("Connected again"))


class StallingProxy:
    """Passes bytes on between a port of its own and another, until it is told to swallow them."""

    def __init__(self, target: int) -> None:
        self.target, self.stalled = target, threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listener]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                self._open.append(near)
                far = socket.create_connection(("127.0.0.1", self.target))
                self._open.append(far)
            except OSError:
                return
            for here, there in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(here, there), daemon=True).start()

    def _pass(self, here: socket.socket, there: socket.socket) -> None:
        swallowed = self.stalled.is_set()
        try:
            while data := here.recv(65536):
                swallowed = swallowed or self.stalled.is_set()  # for ever, as after a cut
                if not swallowed:
                    there.sendall(data)
        except OSError:
            return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # ends the thread that waits there; a close alone does not
        self._thread.join()
        for one in self._open:
            with contextlib.suppress(OSError):  # the other side may be gone
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def proxied(fed: RealFederation, site: str) -> Iterator[StallingProxy]:
    proxy = StallingProxy(fed.port)
    lead_to(fed, site, proxy.port)
    try:
        yield proxy
    finally:
        lead_to(fed, site, fed.port)
        proxy.close()


def test_a_network_that_swallows_all_is_noticed_and_the_connection_made_anew(fed: RealFederation) -> None:
    with proxied(fed, "kyoto") as proxy:
        fed.start_site("kyoto")
        says(fed, "kyoto", f"Connected to localhost:{proxy.port}.")
        proxy.stalled.set()
        says(fed, "kyoto", "is away since", NOTICED)
        proxy.stalled.clear()  # for new connections; the old one stays cut
        says(fed, "kyoto", "Connected again")
        fed.stop_site("kyoto")


def test_a_study_that_waits_is_said_and_the_program_called_once(fed: RealFederation, tmp_path: Path) -> None:
    settings = SiteFolder(fed.home("oslo")).settings
    text = settings.read_text()
    settings.write_text(text.replace("on_pending = []", f"on_pending = {json.dumps([sys.executable, '-c', MAIL])}"))
    fed.start_site("kyoto")
    fed.wait_connected()
    study = study_text('method = "oneshot"\ndegree = 3')
    run = fed.start_run(study, tmp_path / "out")
    says(fed, "oslo", "waits for approval. Read it, then approve or reject it: silograph site approve ")
    found = re.search(r"silograph site approve ([0-9a-f]{64}) --folder (\S+)", said(fed, "oslo"))
    assert found is not None
    for site in fed.sites:
        fed.command("site", "approve", found[1], "--yes", "--folder", fed.home(site))
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    name = next(SiteFolder(fed.home("oslo")).results.iterdir()).name
    says(fed, "oslo", f"Run {name} began: the study 'test', {found[1]}.")
    says(fed, "oslo", f"Run {name} has ended. Its graphs are in ")
    assert (fed.home("oslo") / "mails").read_text().splitlines() == [found[1]]
    assert said(fed, "oslo").count("waits for approval") == 1
    assert f"last run     {name}, ended at" in fed.command("site", "status", "--folder", fed.home("oslo")).stdout
    log = SiteFolder(fed.home("oslo")).log.read_text()
    assert set(said(fed, "oslo").splitlines()) >= set(log.splitlines())
    assert not [line for line in log.splitlines() if not re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  [A-Z]", line)]


@pytest.mark.parametrize(
    ("shows", "words"),
    [
        ("nothing", "it showed no certificate"),
        ("foreign", "its certificate is of another federation"),
        ("distrust", "it does not believe this server's certificate"),
    ],
)
def test_the_server_names_connections_that_it_refuses(
    fed: RealFederation, tmp_path: Path, shows: str, words: str
) -> None:
    root = FederationFolder(fed.fed).server.root_certificate
    stranger = Authority("a stranger")
    context = ssl.create_default_context(cafile=str(root))
    if shows == "foreign":
        stranger.identity("oslo").write(tmp_path / "a.crt", tmp_path / "a.key")
        context.load_cert_chain(tmp_path / "a.crt", tmp_path / "a.key")
    if shows == "distrust":
        context = ssl.create_default_context(cadata=stranger.root.decode())
    try:
        line = socket.create_connection(("localhost", fed.port), 5)
        with line, context.wrap_socket(line, server_hostname="localhost") as secured:
            assert secured.recv(1) == b""
    except ssl.SSLCertVerificationError:
        assert shows == "distrust"
    says(fed, "server", f"Refused a connection from 127.0.0.1: {words}")
    assert "handshaker.cc" not in FederationFolder(fed.fed).printed.read_text()


def test_ended_hosts_say_so_and_the_site_is_not_called_connected(fed: RealFederation) -> None:
    fed.stop_site("oslo")
    assert last(fed, "oslo") == "Site oslo has ended."
    status = fed.command("site", "status", "--folder", fed.home("oslo")).stdout
    assert "connection   not connected: the site is not running." in status
    fed.command("site", "doctor", "--quick", "--folder", fed.home("oslo"), code=1)
