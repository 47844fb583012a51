"""A session at the server: the lead asks its desk; the conductor submits a job, sees how it is, and aborts it."""

import contextlib
import io
import logging
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from nvflare.fuel.f3.comm_config import CommConfigurator
from nvflare.fuel.flare_api.api_spec import (
    AuthenticationError,
    AuthorizationError,
    InternalError,
    JobNotFound,
    JobNotRunning,
    NoConnection,
    NoReply,
    SessionClosed,
)
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session
from nvflare.fuel.hci.client import api
from nvflare.private.fed.authenticator import Authenticator

from silograph.errors import ParameterError, SilosError
from silograph.federation.coordinator.supervisor import JobState, ServerAwayError
from silograph.federation.folders import FederationFolder, Kit
from silograph.federation.invitation import Invitation
from silograph.federation.nvflare.authority import conductor_name, lead_name, read_federation
from silograph.federation.nvflare.desk import COMMAND
from silograph.federation.nvflare.jobs import write_job
from silograph.federation.nvflare.reach import check_reach
from silograph.federation.versions import VERSION

T = TypeVar("T")

ANSWER_SECONDS = 5.0  # for the desk to answer,
RESULT_SECONDS = 60.0  # and for a piece of a result, which takes its time over a slow line
CONNECT_SECONDS, RETRY_SECONDS = 5.0, 0.1  # for one try; between two greetings, the first of which is always too early
LOST_SESSION = (NoConnection, SessionClosed, ConnectionError, NoReply, InternalError)
ENDED_STATUS = "FINISHED"
QUEUED_STATUSES = ("", "SUBMITTED", "APPROVED")

logging.getLogger("nvflare").addHandler(logging.NullHandler())  # those who lose a session say so
# Else NVFlare looks for comm_config.json in the working directory and all below it, which may be somebody's home
CommConfigurator._config_loaded = True


class EagerAuthenticator(Authenticator):  # type: ignore[misc]
    """Does not wait for a second before it greets the server again."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "retry_interval": RETRY_SECONDS})


api.Authenticator = EagerAuthenticator


def lead_session(folder: Path) -> "ServerSession":
    """The session of the lead whose kit lies in a federation's folder, which may hold nothing else."""
    about = read_federation(folder)
    return ServerSession(about, FederationFolder(folder.resolve()).lead, lead_name(about.name))


def conductor_session(folder: Path) -> "ServerSession":
    """The session of the conductor, at the server."""
    about = read_federation(folder)
    return ServerSession(about, FederationFolder(folder.resolve()).conductor, conductor_name(about.name))


class ServerSession:
    """A session of the `user` whose kit it is, opened anew when it is lost. Threads may share it."""

    def __init__(self, about: Invitation, kit: Kit, user: str) -> None:
        self._about, self._kit, self._user = about, kit, user
        self._lock = threading.RLock()
        self._session: Session | None = None
        self._server = ""  # when the server started
        self._servers: dict[str, str] = {}  # job → when the server that it was submitted to had started

    def __enter__(self) -> "ServerSession":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, what: str, **about: object) -> dict[str, Any]:
        """The desk's answer to the lead."""
        asked = {"ask": what, "version": VERSION, **about}
        patience = RESULT_SECONDS if what in ("files", "fetch") else ANSWER_SECONDS

        def command(session: Session) -> Any:
            session.set_timeout(patience)
            # The public `do_command` leaves it to its caller to tell an answer from a lost session
            return session._do_command(COMMAND, props=asked)

        reply = self._do(command)
        answer: Mapping[str, Any] = Session._get_dict_data(reply)
        if "error" in answer:
            raise (ParameterError if answer.get("usage") else SilosError)(str(answer["error"]))
        return dict(answer)

    def submit(self, runs: Sequence[str], sites: Sequence[str]) -> str:
        """Submit a job that conducts runs with these sites; its name."""
        token = str(uuid.uuid4())  # with it, a job that is submitted a second time is still one job
        with tempfile.TemporaryDirectory(prefix="silograph-") as place:
            folder = str(write_job(Path(place) / "job", name="silograph", runs=runs, sites=sites))
            job = str(self._do(lambda session: session.submit_job(folder, submit_token=token)))
        self._servers[job] = self._server
        return job

    def state(self, job: str) -> JobState:
        """How a job is."""
        try:
            status = str(self._do(lambda session: session.get_job_meta(job)).get("status", ""))
        except JobNotFound:
            return "ended"
        if status.startswith(ENDED_STATUS):
            return "ended"
        if status in QUEUED_STATUSES:
            return "waiting"
        # A server that was killed leaves jobs behind that are called running, or about to run, for ever
        return "running" if self._servers.get(job, self._server) == self._server else "ended"

    def reason(self, job: str) -> str:
        """NVFlare's reason why a job could not be deployed."""
        try:
            meta = self._do(lambda session: session.get_job_meta(job))
        except JobNotFound:
            return "the server does not know the job any more"
        detail = [str(one) for one in meta.get("job_deploy_detail") or () if not str(one).endswith(": OK")]
        return "; ".join(detail)

    def abort(self, job: str) -> None:
        """End a job, if it is not over."""

        def abort(session: Session) -> None:
            with contextlib.suppress(JobNotFound, JobNotRunning, InternalError):  # the last: it is not running
                session.abort_job(job)

        with contextlib.suppress(ServerAwayError):
            self._do(abort)

    def connected(self) -> dict[str, float]:
        """The sites that the server sees, and when it last heard of each (seconds since 1970)."""
        info = self._do(lambda session: session.get_system_info())
        return {client.name: float(client.last_connect_time or 0) for client in info.client_info}

    def _do(self, action: Callable[[Session], T]) -> T:
        """Act; once more with a new session when an old one is lost."""
        with self._lock:
            if self._session is not None:
                try:
                    return action(self._session)
                except LOST_SESSION:
                    self.close()
            try:
                return action(self._open())
            except LOST_SESSION as error:
                self.close()
                raise ServerAwayError(f"The server does not answer ({error}).") from error
            except (AuthenticationError, AuthorizationError) as error:
                self.close()
                raise SilosError(
                    f"The server refuses {self._user}: {error}. Is its kit in {self._kit.path}?"
                ) from error

    def _open(self) -> Session:
        if self._session is None:
            check_reach(self._about, self._kit)  # which says sooner, and why
            with contextlib.redirect_stdout(io.StringIO()):  # it says that it connects
                self._session = new_secure_session(self._user, str(self._kit.path), timeout=CONNECT_SECONDS)
            # After the session is kept: one that is lost here must be closed, or this process never ends
            self._server = str(self._session.get_system_info().server_info.start_time)
        return self._session

    def close(self) -> None:
        """Let the connection go; the next question opens another."""
        with self._lock:
            if self._session is not None:
                with contextlib.suppress(Exception):  # whatever a lost connection makes of it
                    self._session.close()
                self._session = None
