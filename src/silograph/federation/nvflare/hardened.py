"""Start NVFlare's processes without the commands that a site must not offer.

    python -m silograph.federation.nvflare.hardened server -m KIT …     the server's parent process
    python -m silograph.federation.nvflare.hardened site   -m KIT …     a site's parent process
    python -m silograph.federation.nvflare.hardened site_job   …        a site's process of one job (SiteLauncher)
    python -m silograph.federation.nvflare.hardened server_job …        the server's process of one job

Requests reach a site as messages, and the stock client answers most of them without asking its own policy: a message
without the header "require authorization" is just carried out, also when another site sent it. So a site keeps only
the processors that a job needs (a list of what stays, so that a new version of NVFlare brings in nothing unseen), hears
only the server and its own processes (`guard`), and refuses jobs whose names are no UUIDs: the client deletes the
folder `KIT/JOB` before it unpacks a job, and a job called `local` would delete the site's policy.

Every process ends when the one that started it dies, so that nothing is left to fight with the next start.
"""

import contextlib
import functools
import runpy
import sys
import uuid
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import FLContextKey, JobConstants
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher
from nvflare.app_common.job_launcher.server_process_launcher import ServerProcessJobLauncher
from nvflare.fuel.f3.cellnet.net_agent import NetAgent
from nvflare.fuel.f3.mpm import MainProcessMonitor
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import RequestHeader
from nvflare.private.fed.client.admin import RequestProcessor
from nvflare.private.fed.client.admin_commands import AdminCommands
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

from silograph.federation.folders import FederationFolder
from silograph.federation.members import KeysOnFile
from silograph.federation.nvflare.admission import admit_members, report_refusals
from silograph.federation.nvflare.contact import greet_with_versions, keep_alive, log_sites, report_server, tell_host
from silograph.federation.nvflare.desk import open_desk
from silograph.federation.nvflare.guard import guard_messages
from silograph.federation.nvflare.limits import limit_frames, limit_streams
from silograph.federation.nvflare.pace import ask_seldom, wait_for_frames
from silograph.federation.nvflare.parent import end_with_parent

KEPT_PROCESSORS = (
    "AbortAppProcessor", "AbortTaskProcessor", "CancelResourceProcessor", "CheckResourceProcessor",
    "ClientStatusProcessor", "DeployProcessor", "NotifyJobStatusProcessor", "StartJobProcessor",
)  # fmt: skip
KEPT_COMMANDS = ("CheckStatusCommand", "AbortCommand", "AbortTaskCommand", "ByeCommand")

_MODULES = {
    "server": "nvflare.private.fed.app.server.server_train",
    "site": "nvflare.private.fed.app.client.client_train",
    "site_job": "nvflare.private.fed.app.client.worker_process",
    "server_job": "nvflare.private.fed.app.server.runner_process",
}
_LAST_SECONDS = 0.2  # that a job's process lingers when it is done; NVFlare's 3 s would be a third of a short job
_THIS = "silograph.federation.nvflare.hardened"


class CheckedProcessor(RequestProcessor):  # type: ignore[misc]
    """A processor that refuses jobs whose names could be paths in the kit."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def get_topics(self) -> list[str]:
        """The topics of the processor behind."""
        return list(self.inner.get_topics())

    def process(self, req: Any, app_ctx: Any) -> Any:
        """Answer as the processor behind does, unless the job's name is no UUID."""
        job = req.get_header(RequestHeader.JOB_ID)
        if job is not None and not _is_uuid(job):
            return error_reply("invalid_request")
        return self.inner.process(req, app_ctx)


class SiteLauncher(ClientProcessJobLauncher):  # type: ignore[misc]
    """Starts the process of a job hardened, and never one of a job that brings code."""

    def launch_job(self, job_meta: dict[str, Any], fl_ctx: Any) -> Any:
        """Start the job's process."""
        workspace = fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT)
        # NVFlare refuses such a job when it is deployed; between unpacking and refusing it could be started
        if Path(workspace.get_app_custom_dir(job_meta.get(JobConstants.JOB_ID))).exists():
            raise RuntimeError("a job with code of its own is not run here")
        return super().launch_job(job_meta, fl_ctx)

    def get_command(self, job_meta: dict[str, Any], fl_ctx: Any) -> str:
        """The stock command with our module in the place of NVFlare's."""
        return _through_us("site_job", str(super().get_command(job_meta, fl_ctx)))


class ServerLauncher(ServerProcessJobLauncher):  # type: ignore[misc]
    """Starts the server's process of a job through this module."""

    def get_command(self, job_meta: dict[str, Any], fl_ctx: Any) -> str:
        """The stock command with our module in the place of NVFlare's."""
        return _through_us("server_job", str(super().get_command(job_meta, fl_ctx)))


def harden() -> None:
    """Take away, in this process, the commands that a site must not offer."""
    ClientRequestProcessors.request_processors[:] = [
        CheckedProcessor(processor)
        for processor in ClientRequestProcessors.request_processors
        if type(processor).__name__ in KEPT_PROCESSORS
    ]
    AdminCommands.commands[:] = [
        command for command in AdminCommands.commands if type(command).__name__ in KEPT_COMMANDS
    ]


def silence_net_agent() -> None:
    """Leave the network agent's requests (stop, change root, stress, settings) unanswered: any peer may send them."""
    original = NetAgent.__init__

    def silent(self: Any, cell: Any, *arguments: Any, **settings: Any) -> None:
        original(self, _Unheard(), *arguments, **settings)
        self.cell = getattr(cell, "core_cell", cell)

    NetAgent.__init__ = silent


class _Unheard:
    """Stands for the cell while the agent registers what it would answer."""

    def register_request_cb(self, **_: Any) -> None:
        """Register nothing."""


def main(arguments: list[str]) -> None:
    """Run one of NVFlare's processes."""
    kind, *rest = arguments
    tell_host()
    silence_net_agent()
    guard_messages()
    limit_frames()
    keep_alive()
    greet_with_versions()
    wait_for_frames()
    if kind.startswith("site"):
        harden()
    else:
        limit_streams()
    if kind == "server":  # all connections with sites, and with the lead, are its
        folder = Path(rest[rest.index("-m") + 1]).parent
        admit_members(KeysOnFile(FederationFolder(folder)))
        open_desk(folder)
        log_sites()
    if kind == "site":
        report_refusals()
        report_server()
    if kind == "site_job":
        ask_seldom()
    if kind.endswith("_job"):  # watches its parent by itself
        MainProcessMonitor.run = functools.partial(MainProcessMonitor.run, shutdown_grace_time=_LAST_SECONDS)
    else:
        end_with_parent()
    sys.argv = [_MODULES[kind], *rest]
    runpy.run_module(_MODULES[kind], run_name="__main__", alter_sys=True)


def _through_us(kind: str, command: str) -> str:
    stock = f"-m {_MODULES[kind]} "
    if command.count(stock) != 1:
        raise RuntimeError("cannot find the job's module in NVFlare's command: is NVFlare 2.9.0 installed?")
    return command.replace(stock, f"-m {_THIS} {kind} ", 1)


def _is_uuid(text: object) -> bool:
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        return str(uuid.UUID(str(text))) == text
    return False


if __name__ == "__main__":
    main(sys.argv[1:])
