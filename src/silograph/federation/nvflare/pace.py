"""Processes that have nothing to do take hardly any time, and yet notice at once when there is something.

NVFlare's client asks for tasks all the time. Between two questions it sleeps, deaf to the message that the run is over.
Here nothing is asked by task, but each question passes four processes: a job that waits for an approval would keep the
server busy. So it is asked seldom, in case that message is lost, and the sleep ends with the run.

Each connection has a queue of what is to be sent. Its reader would wake up ten times a second to see whether the queue
was closed; here the queue wakes it up.
"""

import threading
import time
from typing import Any

from nvflare.fuel.f3.drivers.grpc.qq import QQ
from nvflare.private.fed.client.client_runner import ClientRunner

TASK_SECONDS = 10.0  # between two questions for a task
END_SECONDS = 0.1  # until the end of the run is noticed


def ask_seldom() -> None:
    """Let the process of a job, in this process, wait for its end instead of asking for tasks."""
    ClientRunner._try_run = _run


def _run(self: Any) -> None:
    threading.Thread(target=self._send_job_heartbeat, daemon=True, name="job heartbeat").start()
    while not self.run_abort_signal.triggered:
        with self.engine.new_context() as context:
            self.fetch_and_run_one_task(context)
        asked = time.monotonic()
        while not self.run_abort_signal.triggered and time.monotonic() - asked < TASK_SECONDS:
            time.sleep(END_SECONDS)


def wait_for_frames() -> None:
    """Let the queues of this process wake their readers up, rather than be looked at."""
    QQ.close, QQ.__next__ = _close, _next


def _close(self: Any) -> None:
    self.closed = True
    self.q.put_nowait(None)


def _next(self: Any) -> Any:
    frame = None if self.closed else self.q.get()
    if frame is None:
        raise StopIteration
    return frame
