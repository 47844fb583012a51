"""What a host says: a line for each event, to its terminal and into its log, and the same not over and over.

Others cause lines, with words of their own choice in them. So each kind of line has a number of its own that is told,
and of those about a site, each site: nobody can use up what is kept for news of others, or of another kind.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from silograph._util.terminal import visible

Say = Callable[[str], None]
QUIET_SECONDS = 600.0  # for which a line that came already is counted rather than said
MOST_COUNTED = 100  # lines of a kind; who makes up more of them is not listened to
MOST_KINDS = 10_000  # kinds for which there is such a number; there are some for each site


@dataclass(slots=True)
class _Repeated:
    since: float
    times: int = 0


@dataclass(slots=True)
class _Kind:
    lines: dict[str, _Repeated] = field(default_factory=dict)
    more: float | None = None  # when it was said that there are more

    def keep_new(self, now: float) -> None:
        """Forget what came long ago."""
        self.lines = {line: one for line, one in self.lines.items() if now - one.since < QUIET_SECONDS}
        if self.more is not None and now - self.more >= QUIET_SECONDS:
            self.more = None


class HostLog:
    """Says lines. Any thread may."""

    def __init__(self, logger: logging.Logger, say: Say, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger, self._say, self._clock = logger, say, clock
        self._kinds: dict[str, _Kind] = {}
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Say a line, with the time."""
        line = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {visible(text)}"
        self._logger.info(line)
        with suppress(OSError, ValueError):  # the terminal is gone, such as the other end of a pipe; the log has it
            self._say(line)

    def say_rarely(self, text: str, kind: str) -> None:
        """Say a line that others may cause as often as they like. The kind is not theirs to choose."""
        with self._lock:
            new = self._new(text, kind)
        if new is not None:
            self.say(new)

    def _new(self, text: str, kind: str) -> str | None:
        now, known = self._clock(), self._kind(kind)
        before = known.lines.get(text)
        if before is not None and now - before.since < QUIET_SECONDS:
            before.times += 1
            return None
        if before is None and len(known.lines) >= MOST_COUNTED:
            known.keep_new(now)
            if len(known.lines) >= MOST_COUNTED:
                if known.more is not None:
                    return None
                known.more = now
                return f"{text} There is more of this kind than is told here."
        times = 0 if before is None else before.times
        known.lines[text] = _Repeated(now)
        return text + f" ({times} times more in the last {QUIET_SECONDS / 60:g} minutes)" * bool(times)

    def _kind(self, kind: str) -> _Kind:
        if kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
            for one in self._kinds.values():
                one.keep_new(self._clock())
            self._kinds = {name: one for name, one in self._kinds.items() if one.lines}
            kind = kind if len(self._kinds) < MOST_KINDS else "others"
        return self._kinds.setdefault(kind, _Kind())
