"""A site's half of a job on NVFlare: it hands requests to the site's service, and the service's replies back.

All that protects the site is in its own folder, beside the kit. A job cannot set anything here: its configuration comes
from the coordinator.
"""

import importlib
import threading
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from silograph.federation.folders import SiteFolder, owner_of_kit
from silograph.federation.identity import read_signer, read_trust
from silograph.federation.nvflare.transport import DATA, TOPIC
from silograph.federation.site.service import SiteService


class SiteExecutor(Executor):  # type: ignore[misc]
    """Names of classes in jobs are checked against the site's list: this is the only one on it."""

    def __init__(self) -> None:
        super().__init__()
        self._service: SiteService | None = None
        # What reads tables takes long to load: meanwhile this process connects, and waits for the others
        threading.Thread(target=importlib.import_module, args=("pandas",), daemon=True, name="load pandas").start()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Open the service when the job starts, close it when it ends."""
        if event_type == EventType.START_RUN:
            workspace = fl_ctx.get_workspace()
            folder = owner_of_kit(Path(workspace.get_site_config_dir()), fl_ctx.get_identity_name())
            self._service = open_service(folder)
            fl_ctx.get_engine().register_aux_message_handler(topic=TOPIC, message_handle_func=self._reply)
        elif event_type == EventType.END_RUN and self._service is not None:
            self._service.close()

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        """Nothing is asked by task: requests come to the service."""
        return make_reply(ReturnCode.TASK_UNKNOWN)

    def _reply(self, topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
        data: Any = request.get(DATA)
        if self._service is None or not isinstance(data, bytes):
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        reply = Shareable()
        reply[DATA] = self._service.reply(data)
        return reply


def open_service(folder: Path) -> SiteService:
    """The service of the site in a folder, with the identity of its kit."""
    kit = SiteFolder(folder).kit
    return SiteService(folder, signer=read_signer(kit.certificate, kit.key), trust=read_trust(kit.root_certificate))
