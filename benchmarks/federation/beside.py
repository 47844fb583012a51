"""To look at a federation's processes while something else goes on."""

from __future__ import annotations

import threading
from typing import Self

from testing.real_federation import RealFederation


class Beside:
    """Looks again and again, in a thread of its own, until the block ends."""

    EVERY = 0.1  # seconds

    def __init__(self, federation: RealFederation) -> None:
        self.federation, self._over = federation, threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, daemon=True)

    def look(self) -> None:
        """Look once."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _keep_looking(self) -> None:
        while not self._over.wait(self.EVERY):
            self.look()
