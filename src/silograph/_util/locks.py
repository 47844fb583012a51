"""Files that one process at a time holds; whoever dies lets go of them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import ModuleType
from typing import IO

from silograph.errors import SilographError


class Lock:
    """A lock on a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self, *, wait: float = 0.0) -> bool:
        """Hold the lock; after `wait` seconds of trying in vain, say no."""
        fcntl = _fcntl()
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


def lock(file: IO[bytes], *, shared: bool = False) -> None:
    """Wait until no other process holds the file; it is ours until it is closed, or this process ends."""
    fcntl = _fcntl()
    fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def _fcntl() -> ModuleType:
    try:
        import fcntl
    except ImportError as error:
        raise SilographError(
            "A site needs Linux or macOS: this system cannot lock files (no fcntl). Use WSL or a container."
        ) from error
    return fcntl
