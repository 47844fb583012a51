"""A process that ends when the one that hosts it dies, so that nothing is left to fight with the next start."""

import ctypes
import os
import signal
import sys
import threading
import time

HOST_VARIABLE = "SILOGRAPH_HOST"  # the process that hosts this one
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Die when the parent process dies, even of a signal that cannot be caught."""
    parent = int(os.environ.get(HOST_VARIABLE, os.getppid()))  # given: it may have died while this process loaded
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # For other systems than Linux
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="watch the parent").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
