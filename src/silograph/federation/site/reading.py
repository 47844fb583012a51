"""Whether the site's data can be read to their last row: looked at once for each version of them, beside the requests.

    read.json    the version that was read last, and what was wrong with it, if anything was
    read.lock    held by the process that reads

A large table takes minutes. So it is not read for each question, and nobody who asks waits for it. The process that is
asked ends with its job, long before: what it cannot read within seconds, a process of its own does.

    python -m silograph.federation.site.reading SITE/kit

That one ends when the table is done, and asks nobody whether to go on. The site's host ends it as it ends all that
has the kit's path among its arguments: at its own end, or, if it is killed, when it is started anew.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from silograph._util.documents import parse_json
from silograph._util.files import write_json
from silograph._util.locks import lock
from silograph._util.naming import as_key, naming
from silograph.errors import OutputError, SilographError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData, look_at_data
from silograph.federation.site.settings import read_site

Readable = Literal["ready", "not readable", "reading"]
QUICK_SECONDS = 3.0  # within which most tables are read, and whoever asks has the answer at once
LOOK_SECONDS = 5.0  # between two looks whether the files are still the same
AGAIN = "When that is mended, have it read again: silograph site doctor"


class FullReading:
    """What is known of the version of the data, and what finds it out."""

    def __init__(self, folder: SiteFolder) -> None:
        self._folder = folder

    def state(self, data: SiteData) -> Readable:
        """What a full read of this version gave; one is begun if there was none."""
        if problem_of(self._folder, data.version) is None:
            with self._folder.read_lock.open("ab") as held:
                if lock(held, wait=0.0):  # else another one reads
                    self._read(data, held)
        known = problem_of(self._folder, data.version)
        return "reading" if known is None else "not readable" if known else "ready"

    def _read(self, data: SiteData, held: IO[bytes]) -> None:
        """Read here what is read soon, in a thread, for some kinds of files are read in one piece; or begin to."""
        left = threading.Event()
        what = (self._folder, data, left)
        thread = threading.Thread(target=read_in_full, args=what, daemon=True, name="read in full")
        thread.start()
        thread.join(QUICK_SECONDS)
        if thread.is_alive():
            with suppress(OSError):  # no process more is to be had: the thread goes on, for as long as it can
                _hand_over(self._folder, held)
                left.set()


def _hand_over(folder: SiteFolder, held: IO[bytes]) -> None:
    """Let a process of its own read. It inherits the lock, and holds it until it ends."""
    process = subprocess.Popen(
        # -P: else whatever lies in the working directory would be searched for modules
        [sys.executable, "-P", "-m", "silograph.federation.site.reading", str(folder.kit.path.resolve())],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        pass_fds=(held.fileno(),), start_new_session=True,
    )  # fmt: skip
    # Where this process outlives it, that it has ended must be taken notice of
    threading.Thread(target=process.wait, daemon=True, name="reader").start()


def read_in_full(folder: SiteFolder, data: SiteData, left: threading.Event | None = None) -> None:
    """Read every table to its last row, and remember what is wrong with this version, or that nothing is.

    It is given up when the files are exchanged, or it is `left` to another process.
    """
    looked = time.monotonic()
    with suppress(SilographError, Refused, OSError), noting(folder, data):
        for signals in data.signals():
            for _ in signals.chunks(gaps=True):  # which checks every cell
                if left is not None and left.is_set():
                    raise Refused("busy", "another process reads it")
                if time.monotonic() - looked > LOOK_SECONDS:
                    data.check_unchanged()
                    looked = time.monotonic()


@contextmanager
def noting(folder: SiteFolder, data: SiteData) -> Iterator[None]:
    """Remember what comes of the block, which reads all of the data. What it raises is raised."""
    problem: str | None = None  # not known: the files were exchanged meanwhile, or it was not read to the end
    try:
        with naming(as_key):  # for the site's own people, whoever reads
            yield
        data.check_unchanged()
        problem = ""
    except Refused:
        raise
    except SilographError as error:
        problem = str(error)
        raise
    except Exception as error:  # unless it was noted, it would be read over and over
        why = error.strerror if isinstance(error, OSError) else None
        problem = f"{data.place}: cannot be read to its end ({why or type(error).__name__}). {AGAIN}"
        raise
    finally:
        if problem is not None:
            with suppress(OutputError):  # such as to another account
                note_read(folder, data.version, problem)


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


def main(kit: Path) -> None:
    """Read the data of the site whose kit this is, as the process that has just begun this one was asked to."""
    folder = SiteFolder(kit.parent)
    with suppress(SilographError, Refused, OSError):  # whoever asks next looks at the settings and the files anew
        read_in_full(folder, look_at_data(read_site(folder.path), folder.path))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
