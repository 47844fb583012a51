"""Whether the site's data can be read to their last row: looked at once for each version of them, beside the requests.

    read.json    the version that was read last, and what was wrong with it, if anything was

A large table takes minutes. So it is not read for each question, and nobody who asks waits for it.
"""

import threading
from typing import Literal

from silograph._util.documents import parse_json
from silograph._util.files import write_json
from silograph.errors import SilographError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData

Readable = Literal["ready", "not readable", "reading"]
QUICK_SECONDS = 3.0  # within which most tables are read, and whoever asks has the answer at once


class FullReading:
    """What is known of the version of the data, and the thread that finds it out."""

    def __init__(self, folder: SiteFolder) -> None:
        self._folder = folder
        self._threads: dict[str, threading.Thread] = {}

    def state(self, data: SiteData) -> Readable:
        """What a full read of this version gave; one is begun if there was none."""
        thread = self._threads.get(data.version)
        if problem_of(self._folder, data.version) is None and (thread is None or not thread.is_alive()):
            thread = threading.Thread(target=read_in_full, args=(self._folder, data), daemon=True, name="read in full")
            self._threads = {data.version: thread}
            thread.start()
            thread.join(QUICK_SECONDS)
        known = problem_of(self._folder, data.version)
        return "reading" if known is None else "not readable" if known else "ready"


def read_in_full(folder: SiteFolder, data: SiteData) -> None:
    """Read every table to its last row, and remember what is wrong with this version, or that nothing is."""
    try:
        for signals in data.signals():
            for _ in signals.chunks(gaps=True):  # which checks every cell
                pass
        data.check_unchanged()
    except SilographError as error:
        note_read(folder, data.version, str(error))
    except (Refused, OSError):  # exchanged meanwhile, or a disk that is away: nothing that would hold of the version
        return
    else:
        note_read(folder, data.version)


def note_read(folder: SiteFolder, version: str, problem: str = "") -> None:
    """Remember that a version was read in full."""
    if problem_of(folder, version) != problem:
        write_json(folder.read, {"version": version, "problem": problem})


def problem_of(folder: SiteFolder, version: str) -> str | None:
    """What was wrong with a version that was read in full, or nothing; None: it was not read."""
    try:
        known = parse_json(folder.read.read_bytes())
    except (OSError, ValueError):
        return None
    return str(known.get("problem")) if known.get("version") == version else None
