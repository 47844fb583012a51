"""What the processes of a server or a site tell their host: lines of JSON in a pipe, apart from all that they print.

What they print holds words of others, of any form. Through the pipe come our own events alone, so that the host may
act on them:

    {"kind": "log", "text": …, "place": …, "site": …}   a line for people, where our code says it, and of which site
    {"kind": "answer", "to": …, "code": …, "error": …}  what the server answered a site's parent process; "ok": well
    {"kind": "refused", "why": …}   that the server does not take the site's connections, in its words
    {"kind": "server", "version": …, "nvflare": …, "clock": …}   what the server said of itself when it was connected to

A process inherits the pipe from the one that started it, and knows it by its number and inode: where it was not passed
on, or something else has its number, nothing is told.
"""

import contextlib
import functools
import json
import logging
import os
import re
import select
import stat
import threading
from collections.abc import Callable
from typing import Any

from silograph._util.documents import parse_json

PIPE_VARIABLE = "SILOGRAPH_HOST_PIPE"  # NUMBER:INODE
LONGEST_TEXT = select.PIPE_BUF // 2  # bytes; with the rest, lines of several processes do not mix

Event = dict[str, Any]
_SITE = "silograph_site"  # among what a record of a line has
_CONTEXT = re.compile(r"^\[identity=[^\]]*\]: ")


class HostPipe:
    """The host's end, for one process and all that it starts."""

    def __init__(self) -> None:
        self._read, self.passed = os.pipe()
        # A host that is stopped may not stop those who tell it something
        os.set_blocking(self.passed, False)

    @property
    def variable(self) -> dict[str, str]:
        """What the process must find in its environment."""
        return {PIPE_VARIABLE: f"{self.passed}:{os.fstat(self.passed).st_ino}"}

    def close(self) -> None:
        """No process has it."""
        os.close(self.passed)
        os.close(self._read)

    def listen(self, hear: Callable[[Event], None]) -> threading.Thread:
        """Hear events in a thread, until all processes have ended that could tell one."""
        os.close(self.passed)  # the process has it
        thread = threading.Thread(target=self._listen, args=(hear,), daemon=True, name="events")
        thread.start()
        return thread

    def _listen(self, hear: Callable[[Event], None]) -> None:
        with os.fdopen(self._read, "rb") as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # torn by a kill
                    hear(parse_json(line))


def tell(kind: str, **fields: object) -> None:
    """Tell the host, if there is one that listens."""
    handle = _handle()
    if handle is None:
        return
    short = {name: value[:LONGEST_TEXT] if isinstance(value, str) else value for name, value in fields.items()}
    line = json.dumps({"kind": kind, **short}).encode()
    if len(line) >= select.PIPE_BUF:  # escapes take more bytes than characters
        line = json.dumps({"kind": kind, **{name: str(value)[:80] for name, value in short.items()}}).encode()
    with contextlib.suppress(OSError):  # the host is gone, and this process soon; or it has not read for long
        os.write(handle, line + b"\n")


@functools.cache
def _handle() -> int | None:
    number, _, inode = os.environ.get(PIPE_VARIABLE, "").partition(":")
    with contextlib.suppress(ValueError, OSError):
        about = os.fstat(int(number))
        if stat.S_ISFIFO(about.st_mode) and about.st_ino == int(inode):
            return int(number)
    return None


class TellHost(logging.Handler):
    """Brings a logger's lines to the host; those about a site are logged with `extra=about(site)`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one, without the context that NVFlare puts before it."""
        text, place = _CONTEXT.sub("", record.getMessage()).strip(), f"{record.module}:{record.lineno}"
        tell("log", text=text[:1].upper() + text[1:], place=place, site=getattr(record, _SITE, ""))


def about(site: str) -> dict[str, str]:
    """What a line is logged with that others cause: its site, by the certificate, who may cause no more than its share.

    Of a process of a site's job, it is the site.
    """
    return {_SITE: site.split(".", 1)[0]}
