"""How much a peer may send: frames, and answers in many frames, are cut off before they are put together.

The stock limits are 2 GB a frame and 4 GB a stream. The server needs a little for sessions, jobs and heartbeats. Only
while it waits for an answer may one be as large as the request's answers can be.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.fuel.f3.drivers import grpc_driver
from nvflare.fuel.f3.streaming.blob_streamer import BlobHandler
from nvflare.fuel.utils.fobs.decomposers.via_downloader import ViaDownloaderDecomposer

LARGEST_FRAME = 8_000_000  # bytes; NVFlare sends what is larger than one in pieces of 1 MB
LARGEST_UNASKED = 16_000_000  # bytes of a stream that nobody waits for
WRAPPING = 100_000  # bytes that NVFlare adds to an answer


class StreamLimit:
    """The largest stream that this process takes, and whose was larger."""

    def __init__(self) -> None:
        self._lock, self._expected, self._cut = threading.Lock(), [LARGEST_UNASKED], set[str]()

    @property
    def largest(self) -> int:
        """Bytes of the largest stream that may come in now."""
        with self._lock:
            return max(self._expected)

    @contextmanager
    def expecting(self, site: str, most: int) -> Iterator[None]:
        """Wait for an answer of at most so many bytes."""
        with self._lock:
            self._expected.append(most + WRAPPING)
            self._cut.discard(site)
        try:
            yield
        finally:
            with self._lock:
                self._expected.remove(most + WRAPPING)

    def note(self, site: str) -> None:
        """A stream of this site's was cut off."""
        with self._lock:
            self._cut.add(site)

    def was_cut(self, site: str) -> bool:
        """Whether a stream of this site's was cut off since it was asked."""
        with self._lock:
            return site in self._cut


STREAMS = StreamLimit()


def limit_streams() -> None:
    """Cut off, in this process, streams that are larger than what it waits for."""
    fail = BlobHandler._fail

    def noted(stream: Any, future: Any, error: Exception) -> None:
        STREAMS.note(str((stream.headers or {}).get(MessageHeaderKey.ORIGIN)).split(".", 1)[0])
        fail(stream, future, error)

    BlobHandler._fail = staticmethod(noted)
    BlobHandler.max_blob_size = property(lambda self: STREAMS.largest, lambda self, value: None)


def limit_frames() -> None:
    """Take no frame that is larger than NVFlare makes them, and fetch nothing because a message says where it is."""
    names = ("grpc.max_send_message_length", "grpc.max_receive_message_length")
    grpc_driver.GRPC_DEFAULT_OPTIONS[:] = [(name, LARGEST_FRAME) for name in names]

    def refused(*_: Any, **__: Any) -> None:
        raise ValueError("nothing is fetched because a message says so")

    ViaDownloaderDecomposer._download_from_remote_cell = refused
