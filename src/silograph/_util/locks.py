"""Locks on files: one process at a time holds a file, and a process that dies lets go of it."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from silograph.errors import OutputError, SilographError

POLL_SECONDS = 0.05


class Lock:
    """A file that is there to be locked, and holds nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self, *, wait: float = 0.0) -> bool:
        """Hold the lock; after `wait` seconds of trying in vain, say no."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        if lock(handle, wait=wait):
            self._handle = handle
            return True
        os.close(handle)
        return False

    def release(self) -> None:
        """Let go."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def lock(file: IO[Any] | int, *, shared: bool = False, wait: float = math.inf) -> bool:
    """Hold a file until it is closed, or this process ends; after `wait` seconds of trying in vain, say no."""
    fcntl = _fcntl()
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if wait == math.inf:
        fcntl.flock(file, kind)
        return True
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True


def is_held(path: Path) -> bool:
    """Whether a process holds a lock, whose file may not be there. Any number may look at once."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not lock(handle, shared=True, wait=0.0)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file while the block changes what it stands for; what cannot be written then is told by its name."""
    try:
        with path.open("ab") as file:
            lock(file)
            yield
    except OSError as error:
        raise OutputError(
            f"{error.filename or path.parent}: cannot be written ({error.strerror}). "
            "Free the disk or give the right to write there."
        ) from error


def _fcntl() -> ModuleType:
    try:
        import fcntl
    except ImportError as error:
        raise SilographError(
            "A federation needs Linux or macOS: this system cannot lock files (no fcntl). Use WSL or a container."
        ) from error
    return fcntl
