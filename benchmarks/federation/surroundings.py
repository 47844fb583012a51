"""What is around a site or the server, and how it fails: the network stalls, the disk is full, the clock is wrong."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from testing.real_federation import RealFederation

DISK_BYTES = 200_000_000  # of a folder that can be filled up
FAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"  # of Debian's package
PIECE = 65536


class StallingProxy:
    """Passes TCP on to a port of this machine, until it stalls: then it passes nothing and closes nothing."""

    def __init__(self, target: int) -> None:
        self._target, self._flowing, self._over = target, threading.Event(), threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True, name="proxy").start()

    def stall(self) -> None:
        """Pass nothing on any more."""
        self._flowing.clear()

    def flow(self) -> None:
        """Go on."""
        self._flowing.set()

    def close(self) -> None:
        """Let go of the port and of all connections."""
        self._over.set()
        self._flowing.set()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                inner, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(inner,), daemon=True, name="proxied").start()

    def _pass_on(self, inner: socket.socket) -> None:
        self._flowing.wait()
        with contextlib.suppress(OSError), inner, selectors.DefaultSelector() as ready:
            outer = socket.create_connection(("127.0.0.1", self._target))
            with outer:
                ready.register(inner, selectors.EVENT_READ, outer)
                ready.register(outer, selectors.EVENT_READ, inner)
                while not self._over.is_set():
                    for key, _ in ready.select(timeout=0.2):
                        self._flowing.wait()
                        data = key.fileobj.recv(PIECE)  # type: ignore[union-attr]
                        if not data:
                            return
                        key.data.sendall(data)


@contextlib.contextmanager
def proxied(federation: RealFederation, site: str) -> Iterator[StallingProxy]:
    """Let one site reach the server through a proxy; the site is started anew before and after."""
    config = federation.home(site) / "kit" / "startup" / "fed_client.json"
    before, proxy = config.read_text(), StallingProxy(federation.port)
    federation.stop_site(site)
    try:
        config.write_text(before.replace(f"localhost:{federation.port}", f"localhost:{proxy.port}"))
        assert config.read_text() != before, "the kit has another address than that of the federation"
        federation.start_site(site)
        federation.wait_connected()
        yield proxy
    finally:
        if site in federation.hosts:
            federation.stop_site(site)
        config.write_text(before)
        proxy.close()
        federation.start_site(site)


class SmallDisk:
    """A folder on a disk of its own, which can be filled up. Needs root, to mount one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._filler = folder, folder / "filler"
        self._kept = folder.with_name(f"{folder.name}.kept")

    def mount(self) -> None:
        """Put the folder's contents on a disk of its own; nothing may use it meanwhile."""
        shutil.copytree(self.folder, self._kept, symlinks=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "tmpfs", self.folder)
        shutil.copytree(self._kept, self.folder, symlinks=True, dirs_exist_ok=True)

    def unmount(self) -> None:
        """Put the contents back where they were; nothing may use them meanwhile."""
        self.free()
        shutil.rmtree(self._kept)
        shutil.copytree(self.folder, self._kept, symlinks=True)
        _run("umount", self.folder)
        shutil.copytree(self._kept, self.folder, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(self._kept)

    def fill(self) -> None:
        """Leave not one byte."""
        with self._filler.open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        with self._filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0")

    def free(self) -> None:
        """Make room again."""
        self._filler.unlink(missing_ok=True)


def clock_library() -> Path | None:
    """What makes a process believe in another time, where it is installed."""
    return next(Path("/").glob(FAKETIME.lstrip("/")), None)


def may_mount() -> bool:
    """Whether this process may mount a disk."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
