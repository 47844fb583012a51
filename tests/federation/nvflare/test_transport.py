"""What NVFlare's replies mean: an answer, a late one, a site out of reach, or one whose process for the job is gone."""

import contextlib
import json
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare")

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from silograph.federation.coordinator.request import Silence
from silograph.federation.nvflare.transport import DATA, AuxTransport

JOB = "4fb6b2ef-f87e-4b3c-b59c-f8075e580731"


class Engine:
    """Replies to a question, and to who asks the site's parent process for its jobs, with what it is given."""

    def __init__(self, reply: Shareable | None, parent: object = None) -> None:
        self.replies = {} if reply is None else {"lima": reply}
        self.parent = parent

    def new_context(self):
        return contextlib.nullcontext()

    def send_aux_request(self, **_):
        return self.replies

    def get_cell(self):
        return SimpleNamespace(send_request=lambda **_: self.parent)


def parent_with(*jobs: str) -> SimpleNamespace:
    running = [{"job_id": job, "app_name": "app", "status": "started"} for job in jobs]
    body = json.dumps({"client_name": "lima", "running_jobs": running})
    return SimpleNamespace(payload=SimpleNamespace(body=body))


def answer(content: object) -> Shareable:
    reply = Shareable()
    reply[DATA] = content
    return reply


@pytest.mark.parametrize(
    ("reply", "parent", "expected"),
    [
        (answer(b"yes"), None, b"yes"),
        (answer("no bytes"), None, b""),  # will be rejected
        (make_reply(ReturnCode.TIMEOUT), None, Silence.LATE),
        (make_reply(ReturnCode.TIMEOUT), parent_with(JOB), Silence.LATE),
        (make_reply(ReturnCode.TIMEOUT), parent_with(), Silence.GONE),
        (None, None, Silence.UNREACHABLE),
        (None, SimpleNamespace(payload=None), Silence.UNREACHABLE),
        (None, SimpleNamespace(payload=SimpleNamespace(body="invalid_request")), Silence.UNREACHABLE),
        (None, parent_with(JOB), Silence.UNREACHABLE),  # coming up
        (None, parent_with("another"), Silence.GONE),
        (make_reply(ReturnCode.COMMUNICATION_ERROR), parent_with(), Silence.GONE),
    ],
)
def test_a_reply_is_an_answer_or_tells_why_there_is_none(reply, parent, expected):
    assert AuxTransport(Engine(reply, parent), JOB).ask("lima", b"?", 1.0, 10) == expected
