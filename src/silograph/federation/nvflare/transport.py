"""How questions travel on NVFlare: as auxiliary messages between the processes of a job, one per site and try."""

from __future__ import annotations

import json
from typing import Any

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable
from nvflare.fuel.f3.cellnet.defs import CellChannel
from nvflare.private.admin_defs import Message
from nvflare.private.defs import ClientStatusKey, TrainingTopic, new_cell_message

from silograph.federation.coordinator.question import Silence

TOPIC = "silograph.question"
DATA = "data"
PROBE = 2.0  # seconds for a site's parent process to say which jobs it runs


class AuxTransport:
    """NVFlare's engine at the server."""

    def __init__(self, engine: Any, job: str) -> None:
        self._engine, self._job = engine, job

    def ask(self, site: str, data: bytes, timeout: float) -> bytes | Silence:
        """Bring bytes to a site, and its bytes back."""
        request = Shareable()
        request[DATA] = data
        with self._engine.new_context() as context:
            replies = self._engine.send_aux_request(
                targets=[site], topic=TOPIC, request=request, timeout=timeout, fl_ctx=context, optional=True
            )
        reply = (replies or {}).get(site)
        if reply is None:
            return self._unreachable(site)
        code = reply.get_return_code(ReturnCode.OK)
        if code == ReturnCode.TIMEOUT:
            return Silence.LATE
        answer = reply.get(DATA)
        if code != ReturnCode.OK:
            return self._unreachable(site)
        return answer if isinstance(answer, bytes) else b""  # which will be rejected, with a reason

    def _unreachable(self, site: str) -> Silence:
        """Whether the site's process is on its way, or gone: a site that was started anew knows nothing of the job."""
        request = new_cell_message({}, Message(topic=TrainingTopic.CHECK_STATUS, body=""))
        try:
            reply = self._engine.get_cell().send_request(
                target=site,
                channel=CellChannel.CLIENT_MAIN,
                topic=TrainingTopic.CHECK_STATUS,
                request=request,
                timeout=PROBE,
                optional=True,
            )
            jobs = json.loads(reply.payload.body)[ClientStatusKey.RUNNING_JOBS]
            known = any(job[ClientStatusKey.JOB_ID] == self._job for job in jobs)
        except (AttributeError, ValueError, KeyError, TypeError):
            return Silence.UNREACHABLE
        return Silence.UNREACHABLE if known else Silence.GONE
