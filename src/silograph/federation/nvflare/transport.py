"""How questions travel on NVFlare: as auxiliary messages between the processes of a job, one per site and try."""

from __future__ import annotations

from typing import Any

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable

from silograph.federation.coordinator.question import Silence

TOPIC = "silograph.question"
DATA = "data"


class AuxTransport:
    """NVFlare's engine at the server."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

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
            return Silence.UNREACHABLE
        code = reply.get_return_code(ReturnCode.OK)
        if code == ReturnCode.TIMEOUT:
            return Silence.LATE
        answer = reply.get(DATA)
        if code != ReturnCode.OK:
            return Silence.UNREACHABLE
        return answer if isinstance(answer, bytes) else b""  # which will be rejected, with a reason
