"""Processes that wait: they are asked for nothing, and end at once."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare")

from nvflare.apis.signal import Signal
from nvflare.fuel.f3.drivers.grpc.qq import QQ, QueueClosed
from nvflare.private.fed.client.client_runner import ClientRunner

from silograph.federation.nvflare.pace import ask_seldom, wait_for_frames


@pytest.fixture
def queue(monkeypatch):
    monkeypatch.setattr(QQ, "close", QQ.close)
    monkeypatch.setattr(QQ, "__next__", QQ.__next__)
    wait_for_frames()
    return QQ()


def test_a_queue_gives_its_frames_in_order_and_wakes_its_reader_when_it_is_closed(queue):
    read, both = [], threading.Event()

    def reading():
        for frame in queue:
            read.append(frame)
            if len(read) == 2:
                both.set()

    reader = threading.Thread(target=reading)
    reader.start()
    queue.append("first")
    queue.append("second")
    assert both.wait(10)
    queue.close()
    reader.join(10)
    assert not reader.is_alive()
    assert read == ["first", "second"]


def test_a_queue_that_was_closed_takes_nothing_and_gives_nothing(queue):
    queue.append("too late")
    queue.close()
    queue.close()
    assert list(queue) == []
    assert list(queue) == []
    with pytest.raises(QueueClosed):
        queue.append("more")


def test_a_job_asks_for_a_task_once_and_ends_with_its_run(monkeypatch):
    monkeypatch.setattr(ClientRunner, "_try_run", ClientRunner._try_run)
    ask_seldom()
    asked, signal = threading.Event(), Signal()
    questions, heartbeats = [], []

    def ask(context):
        questions.append(context)
        asked.set()

    runner = SimpleNamespace(
        run_abort_signal=signal,
        engine=SimpleNamespace(new_context=lambda: nullcontext("a context")),
        fetch_and_run_one_task=ask,
        _send_job_heartbeat=lambda: heartbeats.append(1),
    )
    job = threading.Thread(target=ClientRunner._try_run, args=(runner,))
    job.start()
    assert asked.wait(10)
    signal.trigger(True)
    job.join(5)
    assert not job.is_alive()
    assert questions == ["a context"]
    assert heartbeats == [1]
