"""What a host hears from its processes, and how it says it."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from silograph.federation.nvflare import contact, host_log
from silograph.federation.nvflare.handshakes import Handshakes
from silograph.federation.nvflare.host_log import MOST_COUNTED, QUIET_SECONDS, HostLog
from silograph.federation.nvflare.host_pipe import PIPE_VARIABLE, HostPipe
from silograph.federation.nvflare.watches import LogWatch

TELL = """
import logging, sys
from silograph.federation.nvflare.host_pipe import TellHost, about, tell
logging.getLogger("silograph").addHandler(TellHost())
logging.getLogger("silograph.x").warning("dropped %s", "é" * 5000)
logging.getLogger("silograph.x").warning("dropped %s", "oslo.job", extra=about("oslo.job"))
tell("answer", code="ok", to="heartbeat")
print("printed")
"""


def run(code: str, pipe: HostPipe | None, **variables: str) -> str:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environment = {**kept, **(pipe.variable if pipe else {}), **variables}
    passed = () if pipe is None else (pipe.passed,)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, pass_fds=passed, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_process_tells_its_host_apart_from_what_it_prints() -> None:
    pipe, heard = HostPipe(), []
    assert run(TELL, pipe) == "printed\n"
    pipe.listen(heard.append).join(30)
    log, of_a_site, answer = heard
    assert log["kind"] == "log"
    assert (log["place"], log["site"]) == ("<string>:5", "")
    assert (of_a_site["place"], of_a_site["site"]) == ("<string>:6", "oslo")
    assert log["text"].startswith("Dropped éééé")
    assert len(json.dumps(log)) < 4096
    assert answer == {"kind": "answer", "code": "ok", "to": "heartbeat"}


@pytest.mark.parametrize("variable", ["", "nonsense", "1:1", "999:5"])
def test_a_process_without_its_hosts_pipe_tells_nobody(variable: str) -> None:
    assert run(TELL, None, **{PIPE_VARIABLE: variable}) == "printed\n"


def test_a_host_that_does_not_listen_stops_nobody() -> None:
    pipe = HostPipe()
    many = 'from silograph.federation.nvflare.host_pipe import tell\nfor _ in range(5000): tell("log", text="x" * 99)'
    run(many, pipe)
    heard = []
    pipe.listen(heard.append).join(30)
    assert 0 < len(heard) < 5000


# --- what it says -----------------------------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[HostLog, list[str], Clock, Path]]:
    logger, said, clock, path = logging.Logger("x"), list[str](), Clock(), tmp_path / "site.log"
    handler = logging.FileHandler(path)
    logger.addHandler(handler)
    yield HostLog(logger, said.append, clock=clock), said, clock, path
    handler.close()


def test_a_line_has_its_time_and_does_nothing_to_a_terminal(log) -> None:
    host, said, _, path = log
    host.say("Site \x1b[31mred\nof two lines")
    (line,) = said
    assert line.endswith(" UTC  Site \\x1b[31mred\\nof two lines")
    assert path.read_text() == line + "\n"


def test_what_others_cause_over_and_over_is_said_now_and_then(log) -> None:
    host, said, clock, _ = log
    for _ in range(100):
        host.say_rarely("Refused somebody.", "refused")
    clock.now += QUIET_SECONDS + 1
    host.say_rarely("Refused somebody.", "refused")
    assert [line.split("UTC  ")[1] for line in said] == [
        "Refused somebody.",
        "Refused somebody. (99 times more in the last 10 minutes)",
    ]


def test_who_makes_up_ever_new_lines_fills_neither_memory_nor_disk(log) -> None:
    host, said, clock, _ = log
    for number in range(3 * MOST_COUNTED):
        host.say_rarely(f"Dropped {number}.", "dropped")
    assert len(said) == MOST_COUNTED + 1
    assert "more of this kind" in said[-1]
    clock.now += QUIET_SECONDS + 1
    host.say_rarely("Dropped the next.", "dropped")
    assert said[-1].endswith("Dropped the next.")


def test_who_makes_up_ever_new_lines_keeps_nobody_elses_from_being_said(log) -> None:
    host, said, _, _ = log
    watch = LogWatch(host)
    for number in range(3 * MOST_COUNTED):
        text = f"Site evil connected from 192.0.2.{number}, silograph 1.{number}."
        watch.hear({"kind": "log", "text": text, "place": "contact:9", "site": "evil"})
    for event in (
        {"text": "Site oslo connected from 192.0.2.1, silograph 1.0.", "place": "contact:9", "site": "oslo"},
        {"text": "Refused a connection of site lima: its key was revoked.", "place": "admission:82", "site": ""},
    ):
        watch.hear({"kind": "log", **event})
        assert said[-1].endswith(event["text"])
    assert len(said) == MOST_COUNTED + 3


def test_however_many_kinds_there_are_memory_is_bounded(log, monkeypatch: pytest.MonkeyPatch) -> None:
    host, said, clock, _ = log
    monkeypatch.setattr(host_log, "MOST_KINDS", 10)
    for number in range(500):
        host.say_rarely("Somebody came.", f"kind {number}")
    assert len(said) == 11  # the last one for all others
    assert len(host._kinds) == 11
    clock.now += QUIET_SECONDS + 1
    host.say_rarely("Somebody came.", "kind 500")
    assert (len(said), len(host._kinds)) == (12, 1)


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left on device"), ValueError("closed")])
def test_a_terminal_that_is_gone_is_no_matter(log, error: Exception) -> None:
    def fails(line: str) -> None:
        raise error

    host, _, _, path = log
    host = HostLog(host._logger, fails)
    host.say("Somebody came.")
    assert path.read_text().endswith("Somebody came.\n")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("0.1.0", "0.1.0"), ("2.9.0+nv24.12", "2.9.0+nv24.12"), ("1.0rc1", "1.0rc1"), ("1.0 call 555-0199", None),
        ("1.0" + "a" * 30, None), ("oslo", None), ("1.٣", None), ("1.0\n", None), (7, None), (None, None),
    ],
)  # fmt: skip
def test_of_what_a_site_calls_its_version_only_a_version_is_shown(said: object, shown: str | None) -> None:
    assert contact._version({contact.OURS: said}, contact.OURS) == shown


# --- refused handshakes -----------------------------------------------------------------------------------------------

START = "I1119 05:56:44.690000   14629 handshaker.cc:155] CallNextHandshakerLocked: error="
FAILED = "UNKNOWN: Ssl handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:{code}: OK"
MORE = ["=== Source Location Trace: ===", "src/core/util/status_helper.cc:68"]
ARGUMENTS = " shutdown=false index=2, args={{endpoint=0x7f, args={{grpc.internal.endpoint_peer_address={peer}, x=0}}"


def read(*lines: str) -> tuple[list[str], list[str]]:
    """The lines that are kept, and what is said."""
    handshakes, kept, said = Handshakes(), [], []
    for line in lines:
        traced, refused = handshakes.read(line)
        kept += [] if traced else [line]
        said += [refused] if refused else []
    return kept, said


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "100000c0:SSL routines:OPENSSL_internal:PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid "
            "certificate verification context",
            "it showed no certificate",
        ),
        (
            "1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate",
            "another root has signed it",
        ),
        (
            "1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired",
            "its certificate has expired",
        ),
        ("1000009c:SSL routines:OPENSSL_internal:HTTP_REQUEST: Invalid", "it does not speak TLS"),
        ("10000070:SSL routines:OPENSSL_internal:BAD_PACKET_LENGTH: Invalid", "does not believe this server's"),
        ("10000099:SSL routines:OPENSSL_internal:SOMETHING_NEW: Invalid", "SOMETHING_NEW: Invalid"),
    ],
)
def test_a_refused_connection_is_named_with_its_address_and_the_reason(code: str, words: str) -> None:
    lines = [START + FAILED.format(code=code), *MORE, ARGUMENTS.format(peer="ipv4:192.0.2.7:51594")]
    kept, (said,) = read("before", *lines, "after")
    assert kept == ["before", "after"]
    assert said.startswith("Refused a connection from 192.0.2.7: ")
    assert words in said


def test_a_core_without_the_tracer_tells_the_reason_without_the_address() -> None:
    line = "I1119 05:56:16.954177   14205 ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL: "
    line += "error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired"
    _, (said,) = read(line)
    assert said.startswith("Refused a connection from somewhere: its certificate has expired")


def test_connections_that_are_let_in_or_break_off_are_not_told() -> None:
    peer = "args={endpoint=0x7f, args={grpc.internal.endpoint_peer_address=ipv4:192.0.2.7:5}"
    well = START + f"OK shutdown=false index=1, {peer}"
    broken = START + f"UNAVAILABLE: Handshake read failed, {peer}"
    assert read(well, broken, "2026-11-19 06:09:30 - root - INFO - Server started") == (
        ["2026-11-19 06:09:30 - root - INFO - Server started"],
        [],
    )
