"""Hosting: run the server, or a site's hardened client, in the foreground, and start it again when it dies.

One host process watches one NVFlare parent process, which starts a process for each job, and says what happens
(`watches`); beside the server's, it keeps the conductor (`conductor`). SIGTERM or SIGINT to the host ends all of them.
If the host is killed, the parent ends by itself (`parent.end_with_parent`), the jobs end when they miss their parent,
and what still lives after that, the next start ends first.
"""

import errno
import json
import logging
import logging.handlers
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from silograph._util.files import make_folder
from silograph._util.locks import lock
from silograph.errors import SilosError
from silograph.federation.folders import HOST_FILE, FederationFolder, Kit, SiteFolder
from silograph.federation.invitation import read_invitation
from silograph.federation.nvflare.handshakes import TRACE
from silograph.federation.nvflare.host_log import HostLog, Say
from silograph.federation.nvflare.host_pipe import HostPipe
from silograph.federation.nvflare.policy import place_storage
from silograph.federation.nvflare.provisioning import ORG
from silograph.federation.nvflare.watches import LogWatch, ServerWatch, SiteWatch, Watch

_PACKAGE = "silograph.federation.nvflare."
_MODULE = f"{_PACKAGE}hardened"
_MODULES = ("silograph.federation.", "nvflare.")  # of all processes that run on a kit; `site.reading` among them
_LOG_BYTES, _OLD_LOGS = 10_000_000, 5
_FIRST_WAIT, _LONGEST_WAIT, _GOOD_LIFE = 1.0, 30.0, 60.0  # seconds
_END_SECONDS = 8.0  # for a process to end by itself after SIGTERM
_PORT_SECONDS = 2.0  # for a process that was ended to let go of its port
# What a process needs of its surroundings. Not PYTHONPATH: what is imported at a site is what is installed there.
_KEPT_VARIABLES = (
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
_KEPT_PREFIXES = ("BLIS_", "MKL_", "NUMBA_", "OMP_", "OPENBLAS_")  # bits depend on what numeric libraries are told

# Read by the jobs' processes unless the job says otherwise: end at once when all is done; miss a dead site soon
_PACE = {
    "NVFLARE_END_RUN_READINESS_CHECK_INTERVAL": "0.1",
    "NVFLARE_DEAD_CLIENT_GRACE_PERIOD": "5",
    "NVFLARE_DEAD_CLIENT_CHECK_LEAD_TIME": "5",
    "NVFLARE_JOB_HEARTBEAT_INTERVAL": "2",
}

# Memory that is let go is kept for the next message: to get 12 MB from the system anew, page by page, with each of them
# takes longer than to check and add their numbers
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**27)}


@dataclass(frozen=True, slots=True)
class Hosted:
    """A server or a site to host: its name for people, its folder and kit, its logs, the command that runs it."""

    name: str
    folder: Path
    kit: Kit
    log: Path  # what happens
    printed: Path  # what the processes print
    command: tuple[str, ...]
    environment: Mapping[str, str]
    watch: Callable[[HostLog], Watch]
    beside: "Hosted | None" = None  # a process of its own, which is kept for as long
    check: Callable[[], None] = lambda: None  # raises where it could not run


def host_server(folder: Path, *, environment: Mapping[str, str] | None = None, say: Say = print) -> None:
    """Host the federation's server until SIGTERM or SIGINT. `environment` is added to the few variables kept."""
    federation = FederationFolder(folder.resolve())
    kit = federation.server
    if not kit.config.exists():
        raise SilosError(f"{folder}: has no server's kit. Found the federation first: silograph federation new.")
    if not federation.conductor.config.exists():
        raise SilosError(f"{folder}: has no conductor's kit. Put the folder conductor/ back, or found it anew.")
    place_storage(federation)
    command = _command("server", kit, f"org={ORG}")
    variables = {**_environment(environment), "MALLOC_ARENA_MAX": "4"}
    logs = (federation.log, federation.printed)
    conduct = (sys.executable, "-u", "-m", f"{_PACKAGE}conductor", str(federation.conductor.path))
    conductor = Hosted("The conductor", federation.path, federation.conductor, *logs, conduct, variables, LogWatch)
    hosted = Hosted(
        "The server", federation.path, kit, *logs, command, {**variables, **TRACE},
        lambda log: ServerWatch(federation, log), beside=conductor, check=lambda: _check_port(federation),
    )  # fmt: skip
    _host(hosted, say)


def host_site(site_folder: Path, *, environment: Mapping[str, str] | None = None, say: Say = print) -> None:
    """Host a site's hardened client until SIGTERM or SIGINT. `environment` is added to the few variables kept."""
    folder = SiteFolder(site_folder.resolve())
    kit = folder.kit
    if not kit.config.exists():
        raise SilosError(f"{folder.path}: has no kit. Install the coordinator's answer first: silograph site join.")
    site = str(json.loads(kit.config.read_text(encoding="utf-8"))["client"]["fqsn"])
    command = _command("site", kit, f"uid={site}", f"org={ORG}", "heart_beat_interval=5")
    variables = {**_environment(environment), "MALLOC_ARENA_MAX": "2"}
    hosted = Hosted(
        f"Site {site}", folder.path, kit, folder.log, folder.printed, command, variables,
        lambda log: SiteWatch(folder, log),
    )  # fmt: skip
    _host(hosted, say)


def _check_port(federation: FederationFolder) -> None:
    """Raise where another program has the server's port: NVFlare would wait beside it, and say nothing."""
    about = read_invitation(federation.about)
    # As NVFlare listens, of which only the former is meant for this machine alone
    address = "127.0.0.1" if about.server.rstrip(".").lower() == "localhost" else ""
    deadline = time.monotonic() + _PORT_SECONDS
    while True:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((address, about.port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                    time.sleep(0.1)  # a server of ours that was just ended may still hold it
                    continue
                raise SilosError(_no_port(about.port, error)) from error
        return


def _no_port(port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Another program listens at port {port}, where the server is to listen. End it (ss -ltnp shows which)."
    return f"Nothing may listen at port {port} here ({error.strerror}). Give this account the right to."


def _command(kind: str, kit: Kit, *settings: str) -> tuple[str, ...]:
    """The command of NVFlare's `sub_start.sh`, through our module."""
    start = (sys.executable, "-u", "-m", _MODULE, kind, "-m", str(kit.path), "-s", kit.config.name)
    return (*start, "--set", "secure_train=true", *settings, "config_folder=")


def _environment(added: Mapping[str, str] | None) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name in _KEPT_VARIABLES or name.startswith(_KEPT_PREFIXES)
    }
    # PYTHONSAFEPATH: else the kit's folder, the working directory of every job, would be searched for modules
    return {**kept, **_PACE, **_MEMORY, "PYTHONSAFEPATH": "1", **(added or {})}


def _host(hosted: Hosted, say: Say) -> None:
    make_folder(hosted.log.parent)
    with (
        _only_host(hosted) as claim,
        _ending() as end,
        _logger(hosted.log) as events,
        _logger(hosted.printed) as printed,
    ):
        log = HostLog(events, say)
        for one in (hosted, hosted.beside):
            if one is not None:
                _end_leftovers(one)
        hosted.check()
        log.say(f"{hosted.name} starts. This is written to {hosted.log}, what NVFlare prints to {hosted.printed.name}.")
        try:
            with _kept(hosted.beside, end, printed, claim, log):
                _keep(hosted, end, printed, claim, log, note=claim.note)
        finally:
            log.say(f"{hosted.name} has ended.")


def _keep(
    hosted: Hosted,
    end: threading.Event,
    printed: logging.Logger,
    claim: "_Claim",
    log: HostLog,
    *,
    note: Callable[[int], None] = lambda process: None,
) -> None:
    """Run a process, and start it again when it dies, or could not be started."""
    watch, wait = hosted.watch(log), _FIRST_WAIT
    while not end.is_set():
        began = time.monotonic()
        try:
            code = _run_once(hosted, end, printed, claim, watch, note)
            news = f"ended unexpectedly (code {code}) and is started again; see {hosted.printed}."
        except (OSError, RuntimeError) as error:  # such as no process, or no thread, that is to be had now
            news = f"cannot be started ({error}). It is tried again."
        if end.is_set() or not claim.holds():
            break
        wait = _FIRST_WAIT if time.monotonic() - began > _GOOD_LIFE else wait
        # Always: it is the host's own news, nobody else can cause it often, and these waits keep it seldom
        log.say(f"{hosted.name} {news}")
        end.wait(wait)
        wait = min(2 * wait, _LONGEST_WAIT)
    watch.close()


@contextmanager
def _kept(
    hosted: Hosted | None, end: threading.Event, printed: logging.Logger, claim: "_Claim", log: HostLog
) -> Iterator[None]:
    """Keep a process beside another one, until the block ends."""
    if hosted is None:
        yield
        return

    def keep() -> None:
        try:
            _keep(hosted, end, printed, claim, log)
        except Exception as error:  # nobody thought of: without a word, the server would go on alone
            log.say(f"{hosted.name} cannot be kept running ({type(error).__name__}: {error}). All ends.")
            end.set()
            raise

    thread = threading.Thread(target=keep, name=hosted.name)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _run_once(
    hosted: Hosted,
    end: threading.Event,
    printed: logging.Logger,
    claim: "_Claim",
    watch: Watch,
    note: Callable[[int], None],
) -> int:
    """Run the process until it ends or is to end; return its code."""
    pipe = HostPipe()
    try:
        process = subprocess.Popen(
            hosted.command,
            cwd=hosted.kit.path,
            env={**hosted.environment, **pipe.variable, "SILOGRAPH_HOST": str(os.getpid())},  # parent.HOST_VARIABLE
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(pipe.passed,),
            start_new_session=True,  # a Ctrl-C is for the host, which then ends its processes in order
        )
    except OSError:
        pipe.close()
        raise
    readers = list[threading.Thread]()
    try:
        note(process.pid)
        assert process.stdout is not None
        readers.append(_copying(process.stdout, printed, watch))
        readers.append(pipe.listen(watch.hear))
        while process.poll() is None and not end.wait(0.2):
            watch.look()
            if not claim.holds():
                end.set()
    finally:  # also where something in this block fails: the next start would have two
        _end_tree(process.pid)
        code = process.wait()
        _end_leftovers(hosted)  # jobs whose parent is dead already are nobody's children
        for reader in readers:
            reader.join(timeout=2.0)
    return code


def _copying(stream: IO[bytes], printed: logging.Logger, watch: Watch) -> threading.Thread:
    def copy() -> None:
        with stream:
            for line in stream:
                text = line.decode("utf-8", "replace").rstrip("\n")
                if watch.keeps(text):
                    printed.info(text)

    thread = threading.Thread(target=copy, daemon=True, name="log")
    thread.start()
    return thread


def _end_tree(pid: int) -> None:
    """End a process and all that it started: by request first, then by force."""
    try:
        parent = psutil.Process(pid)
        processes = [*parent.children(recursive=True), parent]
    except psutil.Error:
        return
    _end(processes)


def _end(processes: list[psutil.Process]) -> None:
    for act in ("terminate", "kill"):
        ours = []
        for process in processes:
            # It is gone; or it is another account's, which only names our kit: it is let be, and not waited for
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                getattr(process, act)()
                ours.append(process)
        _, processes = psutil.wait_procs(ours, timeout=_END_SECONDS)


def _end_leftovers(hosted: Hosted) -> None:
    """End processes of this very kit that no host watches: every one of them has the kit's path as an argument."""
    left, kit = [], str(hosted.kit.path)
    for process in psutil.process_iter():
        try:
            arguments = process.cmdline()
        except psutil.Error:
            continue
        if kit in arguments and any(argument.startswith(_MODULES) for argument in arguments):
            left.append(process)
    _end(left)


@dataclass(frozen=True, slots=True)
class _Claim:
    """The folder's lock, held by this process."""

    path: Path
    file: IO[str]

    def note(self, process: int) -> None:
        """Write down the host and its process; a full disk is no reason to host nothing."""
        with suppress(OSError):  # unbuffered, or what could not be written would be tried again, and raise elsewhere
            os.ftruncate(self.file.fileno(), 0)
            os.write(self.file.fileno(), json.dumps({"host": os.getpid(), "process": process}).encode())

    def holds(self) -> bool:
        """Whether the folder is still the one that was claimed: it may have been deleted, and made anew by others."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self.file.fileno()))
        except OSError:
            return False


@contextmanager
def _only_host(hosted: Hosted) -> Iterator[_Claim]:
    """Hold the folder's lock, or raise when another process does."""
    path = hosted.folder / HOST_FILE
    with path.open("a+", encoding="utf-8") as file:
        if not lock(file, wait=0.0):
            host = (running(hosted.folder) or {}).get("host", "unknown")
            raise SilosError(f"{hosted.name} is running already (process {host}). Stop it first.")
        yield _Claim(path, file)
        file.truncate(0)


def running(folder: Path) -> dict[str, int] | None:
    """The process ids of the `host` and its `process` in a folder; None when nobody hosts there."""
    try:
        with (folder / HOST_FILE).open("r+", encoding="utf-8") as file:
            return None if lock(file, wait=0.0) else dict(json.loads(file.read() or "{}"))
    except (OSError, ValueError):
        return None


@contextmanager
def _ending() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, for as long as the block lasts."""
    end = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield end
        return
    before = {number: signal.signal(number, lambda *_: end.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _logger(path: Path) -> Iterator[logging.Logger]:
    handler = _LogFile(path, maxBytes=_LOG_BYTES, backupCount=_OLD_LOGS, encoding="utf-8")
    logger = logging.Logger(str(path), level=logging.INFO)  # not registered: nobody else configures it
    logger.addHandler(handler)
    path.chmod(0o600)
    try:
        yield logger
    finally:
        with suppress(OSError):  # a full disk
            handler.close()


class _LogFile(logging.handlers.RotatingFileHandler):
    """A log that goes on when its disk is full, without a trace on the terminal for each line."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Leave the line out."""
