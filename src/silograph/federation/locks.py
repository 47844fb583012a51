"""A file that one process at a time holds; whoever dies lets go of it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class Lock:
    """A lock on a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self, *, wait: float = 0.0) -> bool:
        """Hold the lock; after `wait` seconds of trying in vain, say no."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(handle)
                    return False
                time.sleep(0.05)
            else:
                self._handle = handle
                return True

    def release(self) -> None:
        """Let go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
