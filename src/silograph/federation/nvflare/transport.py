"""How requests travel on NVFlare: as auxiliary messages between the processes of a job, one per site and try."""

from typing import Any

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.fuel.f3.cellnet.defs import CellChannel
from nvflare.private.admin_defs import Message
from nvflare.private.defs import ClientStatusKey, TrainingTopic, new_cell_message

from silograph._util.documents import parse_json
from silograph.federation.coordinator.request import Oversized, Silence
from silograph.federation.nvflare.limits import STREAMS

TOPIC = "silograph.request"
DATA = "data"
PROBE_SECONDS = 2.0  # for a site's parent process to say which jobs it runs


class AuxTransport:
    """NVFlare's engine at the server."""

    def __init__(self, engine: Any, job: str) -> None:
        self._engine, self._job = engine, job

    def ask(self, site: str, data: bytes, timeout: float, most: int) -> bytes | Silence | Oversized:
        """Bring bytes to a site, and its bytes back; of more than `most` bytes hardly any is read."""
        request = Shareable()
        request[DATA] = data
        with self._engine.new_context() as context, STREAMS.expecting(site, most):
            replies = self._engine.send_aux_request(
                targets=[site], topic=TOPIC, request=request, timeout=timeout, fl_ctx=context, optional=True
            )
        reply = (replies or {}).get(site) or make_reply(ReturnCode.COMMUNICATION_ERROR)
        code = reply.get_return_code(ReturnCode.OK)
        if code == ReturnCode.OK:
            answer = reply.get(DATA)
            return answer if isinstance(answer, bytes) else b""  # which will be rejected, with a reason
        if STREAMS.was_cut(site):
            return Oversized()
        if self._is_gone(site):  # which may look like being late: what is sent to a dead process may just be dropped
            return Silence.GONE
        return Silence.LATE if code == ReturnCode.TIMEOUT else Silence.UNREACHABLE

    def _is_gone(self, site: str) -> bool:
        """Whether the site's parent process is there and knows nothing of the job, as one that was started anew."""
        request = new_cell_message({}, Message(topic=TrainingTopic.CHECK_STATUS, body=""))
        try:
            reply = self._engine.get_cell().send_request(
                target=site,
                channel=CellChannel.CLIENT_MAIN,
                topic=TrainingTopic.CHECK_STATUS,
                request=request,
                timeout=PROBE_SECONDS,
                optional=True,
            )
            jobs = parse_json(reply.payload.body)[ClientStatusKey.RUNNING_JOBS]
            return all(job[ClientStatusKey.JOB_ID] != self._job for job in jobs)
        except (AttributeError, ValueError, KeyError, TypeError):
            return False
