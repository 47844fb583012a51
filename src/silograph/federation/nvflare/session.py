"""The coordinator's lead at the server: submit a job, see how it is, abort it, see which sites are connected."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from nvflare.fuel.flare_api.api_spec import (
    InternalError,
    JobNotFound,
    JobNotRunning,
    NoConnection,
    NoReply,
    SessionClosed,
)
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from silograph.federation.coordinator.supervisor import JobState, ServerAwayError
from silograph.federation.nvflare.authority import lead_name, read_federation
from silograph.federation.nvflare.jobs import write_job

T = TypeVar("T")

CONNECTING = 5.0  # seconds for one try
LOST = (NoConnection, SessionClosed, ConnectionError, NoReply, InternalError)
ENDED = "FINISHED"


class Lead:
    """A session at the federation's server, opened anew when it is lost."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._user = lead_name(read_federation(folder).name)
        self._session: Session | None = None

    def __enter__(self) -> Lead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def submit(self, runs: Sequence[str], sites: Sequence[str]) -> str:
        """Submit a job that conducts runs with these sites; its name."""
        with tempfile.TemporaryDirectory(prefix="silograph-") as place:
            job = write_job(Path(place) / "job", name="silograph", runs=runs, sites=sites)
            return str(self._do(lambda session: session.submit_job(str(job))))

    def state(self, job: str) -> JobState:
        """How a job is."""
        try:
            status = str(self._do(lambda session: session.get_job_meta(job)).get("status", ""))
        except JobNotFound:
            return "ended"
        if status.startswith(ENDED):
            return "ended"
        return "running" if status == "RUNNING" else "waiting"

    def reason(self, job: str) -> str:
        """What NVFlare says of a job that could not be deployed."""
        try:
            meta = self._do(lambda session: session.get_job_meta(job))
        except JobNotFound:
            return "the server does not know the job any more"
        detail = [str(one) for one in meta.get("job_deploy_detail") or () if not str(one).endswith(": OK")]
        return "; ".join(detail)

    def abort(self, job: str) -> None:
        """End a job, if it is not over."""
        with contextlib.suppress(JobNotFound, JobNotRunning, InternalError, ServerAwayError):
            self._do(lambda session: session.abort_job(job))

    def connected(self) -> dict[str, float]:
        """The sites that the server sees, and when it last heard of each (seconds since 1970)."""
        info = self._do(lambda session: session.get_system_info())
        return {client.name: float(client.last_connect_time or 0) for client in info.client_info}

    def _do(self, action: Callable[[Session], T]) -> T:
        """Act; once more with a new session when the old one is lost."""
        for again in (True, False):
            try:
                return action(self._opened())
            except LOST as error:
                self._close()
                if not again:
                    raise ServerAwayError(f"The server does not answer ({error}).") from error
        raise AssertionError("not reached")

    def _opened(self) -> Session:
        if self._session is None:
            with contextlib.redirect_stdout(io.StringIO()):  # it says that it connects
                self._session = new_secure_session(self._user, str(self._folder / "lead"), timeout=CONNECTING)
        return self._session

    def _close(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):  # whatever a lost connection makes of it
                self._session.close()
            self._session = None


def wait_for_server(lead: Lead, patience: float) -> dict[str, float]:
    """The connected sites, once the server answers."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return lead.connected()
        except ServerAwayError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
