"""To wait for an event, and no longer than that takes."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

PATIENCE = 300.0  # seconds for anything that takes a few on an idle machine


def eventually(true: Callable[[], object], within: float = PATIENCE, *, every: float = 0.05) -> None:
    """Wait until something is so; fail if it is not within so many seconds."""
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, f"waited in vain for {within:g} s"
        time.sleep(every)


def eventually_says(process: subprocess.Popen[str], text: str, within: float = PATIENCE) -> str:
    """Wait until a command complains in a line with this text; the line. A command that does not is killed."""
    assert process.stderr is not None
    limit = threading.Timer(within, process.kill)
    limit.start()
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if text in line:
                return line
    finally:
        limit.cancel()
    raise AssertionError(f"ended with code {process.wait()} and did not say {text!r}, but:\n{''.join(said)}")
