"""What a host says: a line for each event, to its terminal and into its log, and the same not over and over."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from silograph._util.terminal import visible

Say = Callable[[str], None]
QUIET_SECONDS = 600.0  # for which a line that came already is counted rather than said
MOST_COUNTED = 1000  # lines; who makes up more of them is not listened to


@dataclass(slots=True)
class _Repeated:
    since: float
    times: int = 0


class HostLog:
    """Says lines. Any thread may."""

    def __init__(self, logger: logging.Logger, say: Say, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger, self._say, self._clock = logger, say, clock
        self._repeated: dict[str, _Repeated] = {}

    def say(self, text: str) -> None:
        """Say a line, with the time."""
        line = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {visible(text)}"
        self._logger.info(line)
        self._say(line)

    def say_rarely(self, text: str) -> None:
        """Say a line that others may cause as often as they like."""
        now, before = self._clock(), self._repeated.get(text)
        if before is not None and now - before.since < QUIET_SECONDS:
            before.times += 1
            return
        if before is None and len(self._repeated) >= MOST_COUNTED:
            self._repeated = {line: one for line, one in self._repeated.items() if now - one.since < QUIET_SECONDS}
            if len(self._repeated) >= MOST_COUNTED:
                text = "There is more of the kind than is told here."
                if text in self._repeated:
                    return
        times = 0 if before is None else before.times
        self._repeated[text] = _Repeated(now)
        self.say(text + f" ({times} times more in the last {QUIET_SECONDS / 60:g} minutes)" * bool(times))
