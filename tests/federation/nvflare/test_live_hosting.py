"""Hosting, against a server and two sites that really run: they join, come back, end together, and obey nobody else.

What a hostile server or site could do is tried from inside: a mole, loaded into their processes by `sitecustomize`,
sends any message to any peer with its host's own identity, past every check that the sender's side would make.
"""

import base64
import datetime
import io
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("nvflare")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from silograph.errors import SilosError
from silograph.federation.nvflare.authority import conductor_name, lead_name, new_kits, sign_request
from silograph.federation.nvflare.hardened import KEPT_PROCESSORS
from silograph.federation.nvflare.hosting import host_server, host_site, running
from silograph.federation.nvflare.kits import install_kit, make_request
from testing.real_federation import free_port
from testing.waiting import eventually

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

MOLE = """
import base64, json, os, pathlib, sys, threading, time

def serve(folder):
    while "nvflare.private.admin_defs" not in sys.modules:
        time.sleep(0.1)
    from nvflare.fuel.f3.cellnet.core_cell import CoreCell
    from nvflare.private.admin_defs import Message
    from nvflare.private.defs import new_cell_message
    while True:
        time.sleep(0.05)
        for path in folder.glob("*.ask"):
            ask = json.loads(path.read_text())
            path.unlink()
            cell = next(iter(CoreCell.ALL_CELLS.values()))
            body = base64.b64decode(ask["zip"]) if "zip" in ask else ask["body"]
            message = Message(ask["topic"], body)
            message.set_headers(ask["headers"])
            payload = message if ask["channel"] == "admin" else body
            if "origin" in ask:
                cell.add_outgoing_request_filter("*", "*", lambda sent: sent.set_header("cn__origin", ask["origin"]))
            reply = cell.send_request(
                channel=ask["channel"], topic=ask["topic"], target=ask["target"],
                request=new_cell_message({}, payload), timeout=ask.get("timeout", 5.0),
            )
            if "origin" in ask:
                cell.out_req_filter_reg.find("*", "*").pop()
            text = str(getattr(reply.payload, "body", reply.payload)) + " | " + str(dict(reply.headers))
            path.with_suffix(".part").write_text(text)
            path.with_suffix(".part").rename(path.with_suffix(".answer"))

if "hardened" in " ".join(sys.orig_argv) and "_job" not in " ".join(sys.orig_argv):
    threading.Thread(target=serve, args=(pathlib.Path(os.environ["MOLE"]),), daemon=True).start()
"""
HOST = """
import json, pathlib, sys
from silograph.federation.nvflare import hosting
getattr(hosting, sys.argv[1])(pathlib.Path(sys.argv[2]), environment=json.loads(sys.argv[3]))
"""


@dataclass(frozen=True)
class Live:
    root: Path
    port: int
    hosts: dict[str, subprocess.Popen]

    @property
    def server_log(self) -> Path:
        """What NVFlare prints at the server."""
        return self.printed("fed")

    def printed(self, folder: str) -> Path:
        return self.root / folder / "logs" / "nvflare.log"

    def kit(self, site: str) -> Path:
        return self.root / site / "kit"

    def start(self, name: str) -> None:
        host, folder = ("host_server", "fed") if name == "server" else ("host_site", name)
        mole = self.root / "mole" / name
        mole.mkdir(parents=True, exist_ok=True)
        environment = {"PYTHONPATH": str(self.root / "mole"), "MOLE": str(mole)}
        arguments = [host, str(self.root / folder), json.dumps(environment)]
        self.hosts[name] = subprocess.Popen([sys.executable, "-c", HOST, *arguments], stdout=subprocess.DEVNULL)

    def joins(self, site: str) -> int:
        return self.server_log.read_text().count(f"New client {site}@") if self.server_log.exists() else 0

    def ask(self, sender: str, topic: str, *, channel: str = "admin", target: str = "north", **message: Any) -> str:
        """What `target` answers when the process of `sender` sends it this."""
        path = self.root / "mole" / sender / f"{uuid.uuid4()}.ask"
        ask = {"channel": channel, "topic": topic, "target": target, "headers": {}, "body": "", **message}
        path.with_suffix(".new").write_text(json.dumps(ask))
        path.with_suffix(".new").rename(path)
        eventually(path.with_suffix(".answer").exists)
        return path.with_suffix(".answer").read_text()


def processes(kit: Path) -> list[psutil.Process]:
    """All that runs on this kit, jobs included."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(kit) in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server and the sites north and south, running and joined."""
    root, port = tmp_path_factory.mktemp("live"), free_port()
    (root / "mole").mkdir()
    (root / "mole" / "sitecustomize.py").write_text(MOLE)
    invitation = new_kits(root / "fed", name="brains", server="localhost", port=port, sites=["north", "south"])

    def join(site: str) -> None:
        request = make_request(root / site, invitation, site)
        install_kit(root / site, sign_request(root / "fed", request, root / f"{site}.signed.zip"), invitation)

    made = Live(root, port, {})
    made.start("server")
    with ThreadPoolExecutor() as pool:
        list(pool.map(join, invitation.sites))
    try:
        for site in invitation.sites:
            made.start(site)
        eventually(lambda: all(made.joins(site) for site in invitation.sites))
        yield made
    finally:
        for host in made.hosts.values():
            host.terminate()
        for host in made.hosts.values():
            host.wait(30)
    kits = ("fed/server", "fed/conductor", "north/kit", "south/kit")
    assert not [left for kit in kits for left in processes(root / kit)]


# ---------------------------------------------------------------------------------------------------------------- TLS


def greeted(port: int, root: Path, certificate: tuple[Path, Path] | None) -> bool:
    """Whether the server speaks to a client that shows this certificate."""
    context = ssl.create_default_context(cafile=str(root))
    context.set_alpn_protocols(["h2"])
    if certificate:
        context.load_cert_chain(*map(str, certificate))
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            return len(secured.recv(9)) == 9  # HTTP/2 begins with a frame of settings
    except (ssl.SSLError, ConnectionError):
        return False


def foreign_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of the same name, signed by somebody else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    day = datetime.timedelta(days=1)
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
    certificate = builder.sign(key, hashes.SHA256())
    (folder / "foreign.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "foreign.key").write_bytes(key.private_bytes(*private))
    return folder / "foreign.crt", folder / "foreign.key"


def test_only_certificates_of_the_federation_are_spoken_to(live: Live, tmp_path: Path) -> None:
    startup = live.kit("north") / "startup"
    root = startup / "rootCA.pem"
    assert greeted(live.port, root, (startup / "client.crt", startup / "client.key"))
    assert not greeted(live.port, root, None)
    assert not greeted(live.port, root, foreign_certificate(tmp_path, "north"))


# --------------------------------------------------------------------------------------------------- hostile messages


def topics() -> dict[str, str]:
    """What a stock client answers, by the class that does."""
    from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

    stock = ClientRequestProcessors.request_processors
    return {topic: type(processor).__name__ for processor in stock for topic in processor.get_topics()}


def test_a_site_answers_no_shell_environment_or_log_request(live: Live) -> None:
    removed = {topic for topic, processor in topics().items() if processor not in KEPT_PROCESSORS}
    assert {"sys.shell", "sys.report_env", "train.configure_job_log", "train.shutdown"} <= removed
    for topic in removed:
        assert live.ask("server", topic, body="ls").startswith("invalid_request"), topic
    assert not live.ask("server", "train.check_status").startswith("invalid_request")


def test_a_site_is_brought_nothing_from_another_site(live: Live) -> None:
    for topic in topics():
        asked = {"body": "ls", "headers": {"job_id": str(uuid.uuid4())}, "timeout": 0.3}
        assert "'timeout'" in live.ask("south", topic, **asked), topic
    dropped = "dropped a message from south: it is for 'north'."
    assert live.server_log.read_text().count(dropped) == len(topics())
    said = (live.root / "fed" / "logs" / "server.log").read_text()
    assert said.count(f"D{dropped[1:]}") == 1  # and not over and over


def test_a_site_obeys_no_other_site_even_if_the_server_brings_what_it_says(live: Live) -> None:
    for topic in topics():
        asked = {"body": "ls", "headers": {"job_id": str(uuid.uuid4())}, "timeout": 0.3, "origin": "south"}
        assert "'timeout'" in live.ask("server", topic, **asked), topic
    dropped = "dropped a message from south: it is of another site."
    assert live.printed("north").read_text().count(dropped) == len(topics())


@pytest.mark.parametrize(
    ("sender", "target", "answer"),
    [("server", "north", "no callback"), ("south", "north", "'timeout'"), ("south", "server", "'timeout'")],
)
def test_nobody_obeys_the_network_agent(live: Live, sender: str, target: str, answer: str) -> None:
    from nvflare.fuel.f3.cellnet import net_agent

    found = [value for name, value in vars(net_agent).items() if name.startswith("_TOPIC_")]
    assert {"stop", "stop_cell", "change_root", "config_vars", "process_info"} <= set(found)
    for topic in found:
        asked = {"channel": net_agent._CHANNEL, "target": target, "timeout": 5.0 if sender == "server" else 0.3}
        assert answer in live.ask(sender, topic, **asked), topic


@pytest.mark.parametrize(("where", "posed"), [("server", "north"), ("north", "server")])
def test_another_process_of_the_machine_cannot_pose_as_a_site_or_the_server(live: Live, where: str, posed: str) -> None:
    """A job's process connects to its parent without TLS; so could any program."""
    import msgpack
    from nvflare.fuel.f3.sfm.constants import HandshakeKeys, Types
    from nvflare.fuel.f3.sfm.prefix import PREFIX_LEN, Prefix

    log = live.server_log if where == "server" else live.printed(where)
    found = re.findall(r"backbone internal listener for tcp://[^:]+:(\d+)", log.read_text())
    hello = msgpack.packb({HandshakeKeys.ENDPOINT_NAME: posed, HandshakeKeys.TIMESTAMP: 0.0})
    frame = bytearray(PREFIX_LEN)
    Prefix(length=PREFIX_LEN + len(hello), type=Types.HELLO, stream_id=1).to_buffer(frame, 0)
    with socket.create_connection(("127.0.0.1", int(found[-1])), timeout=5) as line:
        line.sendall(bytes(frame) + hello)
        told = f"closed a connection of this machine: it says that it is '{posed}'."
        eventually(lambda: told in log.read_text(), within=30)
    assert not live.ask("server", "train.check_status").startswith("None")  # both still speak with each other


def zipped(root: Path) -> str:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path in sorted(root.rglob("*")):
            archive.write(path, path.relative_to(root))
    return base64.b64encode(data.getvalue()).decode()


def app(folder: Path, executor: dict[str, Any], *, signer: Path | None, custom: bool = False) -> str:
    """A site's part of a job, signed with the lead's key or not at all."""
    (folder / "config").mkdir(parents=True)
    config = {"format_version": 2, "executors": [{"tasks": ["*"], "executor": executor}], "components": []}
    (folder / "config" / "config_fed_client.json").write_text(json.dumps(config))
    if custom:
        (folder / "custom").mkdir()
        (folder / "custom" / "own.py").write_text("print('own code')")
    if signer:
        from nvflare.lighter.utils import load_private_key_file, sign_folders

        sign_folders(str(folder), load_private_key_file(str(signer / "client.key")), str(signer / "client.crt"))
    return zipped(folder)


def meta(job: str, role: str = "lead") -> dict[str, Any]:
    name = {"submitter_name": lead_name("brains"), "submitter_org": "silograph", "submitter_role": role}
    return {"job_id": job, "name": "job", "resource_spec": {}, "byoc": True, "min_clients": 1, **name}


def deploy(live: Live, job: str, data: str, role: str = "lead") -> str:
    headers = {"job_id": job, "app_name": "app", "job_meta": meta(job, role)}
    return live.ask("server", "train.deploy", zip=data, headers=headers)


def reserved(live: Live, job: str) -> dict[str, str]:
    """The header of a job for which the site has reserved its resources."""
    answer = live.ask("server", "scheduler.check_resource", body={}, headers={"job_id": job})
    found = re.search(r"'(\w*token\w*)': '([^']+)'", answer)
    assert found, answer
    return {found[1]: found[2]}


OURS = {"path": "silograph.federation.nvflare.executor.SiteExecutor", "args": {}}


def test_an_unsigned_job_is_refused(live: Live, tmp_path: Path) -> None:
    assert "unsigned job rejected" in deploy(live, str(uuid.uuid4()), app(tmp_path / "app", OURS, signer=None))


@pytest.mark.parametrize("role", ["lead", "project_admin", "org_admin", "king"])
def test_a_job_with_code_of_its_own_is_refused(live: Live, tmp_path: Path, role: str) -> None:
    job, lead = str(uuid.uuid4()), live.root / "fed" / "lead" / "startup"
    assert "BYOC not permitted" in deploy(live, job, app(tmp_path / "app", OURS, signer=lead, custom=True), role)
    assert not (live.kit("north") / job).exists()


@pytest.mark.parametrize("job", ["local", "startup", "../key", ""])
def test_a_job_cannot_take_the_place_of_the_policy(live: Live, tmp_path: Path, job: str) -> None:
    lead = live.root / "fed" / "lead" / "startup"
    assert deploy(live, job, app(tmp_path / "app", OURS, signer=lead)).startswith("invalid_request")
    assert (live.kit("north") / "local" / "authorization.json").exists()
    assert (live.kit("north") / "startup" / "client.key").exists()


def test_a_job_that_names_a_program_does_not_run_it(live: Live, tmp_path: Path) -> None:
    mark, log = tmp_path / "it ran", live.printed("north")
    lead = live.root / "fed" / "lead" / "startup"
    program = {"path": "subprocess.Popen", "args": {"args": ["touch", str(mark)]}}
    data = app(tmp_path / "app", program, signer=lead)
    for _ in range(5):  # a heartbeat may end a job that the server does not know before the job is read
        job = str(uuid.uuid4())
        assert deploy(live, job, data).startswith("deployed")
        headers = {"job_id": job, "job_meta": meta(job), **reserved(live, job)}
        assert live.ask("server", "train.start_job", body={}, headers=headers).startswith("Start the client app")
        eventually(lambda job=job: f"run ({job}): child worker process finished" in log.read_text())
        assert not mark.exists()
        if "'subprocess.Popen' at config path" in log.read_text():
            return
    pytest.fail("no job lived long enough to be read")


@pytest.mark.parametrize("user", [lead_name("brains"), conductor_name("brains")])
def test_nobody_submits_code_or_programs(live: Live, tmp_path: Path, user: str) -> None:
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    def job(name: str, executor: dict[str, Any], *, custom: bool) -> str:
        app(tmp_path / name / "app", executor, signer=None, custom=custom)
        controller = {"id": "study", "path": "silograph.federation.nvflare.controller.StudyController", "args": {}}
        server = {"format_version": 2, "workflows": [controller]}
        (tmp_path / name / "app" / "config" / "config_fed_server.json").write_text(json.dumps(server))
        described = {"name": name, "resource_spec": {}, "min_clients": 1, "deploy_map": {"app": ["@ALL"]}}
        (tmp_path / name / "meta.json").write_text(json.dumps(described))
        return str(tmp_path / name)

    mark = tmp_path / "it ran"
    program = {"path": "subprocess.Popen", "args": {"args": ["touch", str(mark)]}}
    session = new_secure_session(user, str(live.root / "fed" / user.split("@")[0]))
    try:
        for made in (job("code", OURS, custom=True), job("program", program, custom=False)):
            number = session.submit_job(made)
            eventually(lambda number=number: session.get_job_meta(number)["status"].startswith("FINISHED"), 60)
            assert session.get_job_meta(number)["status"] != "FINISHED:COMPLETED"
    finally:
        session.close()
    assert not mark.exists()


# -------------------------------------------------------------------------------------------------- dying and ending


def test_a_second_start_is_refused(live: Live) -> None:
    for host, folder in ((host_site, "north"), (host_server, "fed")):
        with pytest.raises(SilosError, match=r"running already \(process \d+\)"):
            host(live.root / folder)


def test_a_killed_client_is_started_again_and_joins(live: Live) -> None:
    before = live.joins("north")
    hosted = running(live.root / "north")
    assert hosted is not None
    assert hosted["host"] == live.hosts["north"].pid
    os.kill(hosted["process"], signal.SIGKILL)
    eventually(lambda: live.joins("north") > before)
    now = running(live.root / "north")
    assert now is not None
    assert now["process"] != hosted["process"]
    assert [process.pid for process in processes(live.kit("north"))] == [now["process"]]


def test_a_killed_host_leaves_nothing_behind(live: Live) -> None:
    assert processes(live.kit("south"))
    live.hosts["south"].kill()
    live.hosts["south"].wait()
    eventually(lambda: not processes(live.kit("south")), within=5)
    assert running(live.root / "south") is None
    before = live.joins("south")
    live.start("south")
    eventually(lambda: live.joins("south") > before)


def test_a_host_that_is_told_to_ends_with_all_it_started(live: Live) -> None:
    live.hosts["south"].send_signal(signal.SIGINT)
    assert live.hosts["south"].wait(20) == 0
    assert not processes(live.kit("south"))
    assert running(live.root / "south") is None


def test_a_host_whose_folder_was_made_anew_gives_way(live: Live) -> None:
    live.start("south")
    eventually(lambda: running(live.root / "south") is not None)
    (live.root / "south" / "host.pid").unlink()
    assert live.hosts["south"].wait(20) == 0
    assert not processes(live.kit("south"))
