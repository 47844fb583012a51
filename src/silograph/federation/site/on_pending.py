"""The program that a site's people want to be called when a study begins to wait, such as one that sends a mail.

It gets a text for people on its standard input, and the same as data in its environment. What others wrote (the
study's name, who asked) is in neither place read as a command: no shell is started, and no argument is added.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO

from silograph._util.terminal import visible
from silograph.federation.folders import SiteFolder
from silograph.federation.site.approvals import Pending
from silograph.federation.site.contact import shown_minute

SECONDS, ENDING_SECONDS = 60.0, 5.0  # that it may take, and to be gone once it is ended
LONGEST_OUTPUT = 300  # characters of what it prints that are told
KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")


def call(
    program: Sequence[str], folder: SiteFolder, study: Pending, name: str, say: Callable[[str], None],
    *, seconds: float = SECONDS,
) -> None:  # fmt: skip
    """Call it and wait for its end; say if it fails, and no more."""
    variables = _variables(folder, study, name)
    kept = {one: os.environ[one] for one in KEPT_VARIABLES if one in os.environ}
    try:
        # Files, not pipes: what the program leaves running, such as a mail queue, may hold them for as long as it likes
        with TemporaryFile() as told, TemporaryFile() as printed:
            told.write(_text(variables).encode())
            told.seek(0)
            process = subprocess.Popen(
                list(program), cwd=folder.path, env=kept | variables, start_new_session=True,
                stdin=told, stdout=printed, stderr=subprocess.STDOUT,
            )  # fmt: skip
            code = _wait(process, seconds)
            last = _last(printed)
    except OSError as error:
        say(f"on_pending in site.toml: {program[0]} cannot be called ({error.strerror}). Nobody was told of the study.")
        return
    if code is None:
        say(f"on_pending in site.toml: {program[0]} took longer than {seconds:g} s and was ended.")
    elif code:
        say(f"on_pending in site.toml: {program[0]} failed with code {code}: {last or 'it said nothing'}")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The program's code; none if it took too long, and was ended with all that it started."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError, PermissionError):  # it has just ended; or has become another account
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # such as one that waits for a disk that is away
            process.wait(ENDING_SECONDS)
        return None


def _last(printed: IO[bytes]) -> str:
    """The end of what it printed."""
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - 4 * LONGEST_OUTPUT))  # a character takes four bytes at most
    return printed.read(4 * LONGEST_OUTPUT).decode("utf-8", "replace").strip()[-LONGEST_OUTPUT:]


def _variables(folder: SiteFolder, study: Pending, name: str) -> dict[str, str]:
    return {
        "SILOGRAPH_SITE_FOLDER": str(folder.path),
        "SILOGRAPH_STUDY_SHA256": study.sha,
        "SILOGRAPH_STUDY_NAME": visible(name),
        "SILOGRAPH_STUDY_FILE": str(study.path),
        "SILOGRAPH_ASKED_BY": visible(study.asked_by),
        "SILOGRAPH_WAITS_SINCE": visible(study.when),
    }


def _text(variables: dict[str, str]) -> str:
    """For people. No line begins with what others wrote: some mail programs take such lines for commands."""
    return (
        f"A study waits for approval at the site in {variables['SILOGRAPH_SITE_FOLDER']}.\n\n"
        f"Study: {variables['SILOGRAPH_STUDY_NAME']}\n"
        f"SHA-256: {variables['SILOGRAPH_STUDY_SHA256']}\n"
        f"Asked for by: {variables['SILOGRAPH_ASKED_BY']}, {shown_minute(variables['SILOGRAPH_WAITS_SINCE'])}\n"
        f"Its file: {variables['SILOGRAPH_STUDY_FILE']}\n\n"
        "Read it, then approve or reject it:\n"
        f"silograph site approve {variables['SILOGRAPH_STUDY_SHA256']} --folder "
        f"{shlex.quote(variables['SILOGRAPH_SITE_FOLDER'])}\n"
    )
