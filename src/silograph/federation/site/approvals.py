"""The studies that a site approved, each by the SHA-256 of its file: not one byte of it can change afterwards.

A study that was asked for and not approved waits in the site's folder for people to read it. The rounds that a study
was answered are counted over all its runs. `SiteFolder` says where all of this lies.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph._util.locks import lock
from silograph.errors import OutputError, ParameterError, ProtocolError
from silograph.federation.folders import SiteFolder
from silograph.federation.study_file import LARGEST_STUDY

MOST_PENDING, LONGEST_TEXT = 50, 500
SHA = re.compile(r"[0-9a-f]{64}")
SHA_PREFIX = re.compile(r"[0-9a-f]{8,64}")
# People read a study in a terminal before they approve it. These move the cursor or turn the order of letters about,
# so that they would see another study than the one they approve. TOML needs none of them.
UNSEEN_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A study that this site answers."""

    sha: str
    name: str
    when: str  # UTC
    by: str
    rounds_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A study that was asked for and waits for approval."""

    sha: str
    path: Path  # the study's file, byte for byte as it came
    asked_by: str
    when: str  # UTC


class Approvals:
    """The approvals in a site's folder. Everything is read anew each time, so that a revocation holds at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = SiteFolder(folder)

    def is_approved(self, sha: str) -> bool:
        """Whether people of this site approved exactly this study."""
        return _check_sha(sha) in self._read()

    def approve(self, sha: str, *, name: str, by: str, fresh: bool = False) -> None:
        """Answer this study from now on; `fresh`: and count its rounds from 0 again."""
        with self._locked():
            approval = {"name": name[:LONGEST_TEXT], "when": _now(), "by": by[:LONGEST_TEXT]}
            if fresh:
                (self._folder.rounds / _check_sha(sha)).unlink(missing_ok=True)
            self._write(self._read() | {_check_sha(sha): approval})
            self._forget(sha)

    def revoke(self, sha: str) -> None:
        """Answer this study no more. Its rounds stay counted."""
        with self._locked():
            kept = self._read()
            if kept.pop(_check_sha(sha), None) is None:
                raise ParameterError(f"Study {sha[:8]} is not approved at this site: there is nothing to revoke.")
            self._write(kept)

    def approved(self) -> list[Approval]:
        """The approved studies, oldest approval first."""
        found = [Approval(sha=sha, **values, rounds_used=self.rounds_used(sha)) for sha, values in self._read().items()]
        return sorted(found, key=lambda approval: approval.when)

    def note_pending(self, sha: str, text: str, *, asked_by: str) -> None:
        """Keep a study for people to read. Nothing is done if it waits already or is approved. The oldest ones go."""
        data = _encode_study(_check_sha(sha), text)
        with self._locked():
            path = self._folder.pending / f"{sha}.toml"
            if self.is_approved(sha) or (path.exists() and _read_pending(path) is not None):
                return
            self._folder.pending.mkdir(exist_ok=True)
            waiting = self.pending()
            for old in waiting[: max(0, len(waiting) - MOST_PENDING + 1)]:
                self._forget(old.sha)
            about = json.dumps({"asked_by": asked_by[:LONGEST_TEXT], "when": _now()})
            write_bytes(path.with_suffix(".json"), about.encode(), under_lock=True)
            write_bytes(path, data, under_lock=True)  # last: with it, the study is there

    def pending(self) -> list[Pending]:
        """The studies that wait for approval, oldest first."""
        found = [_read_pending(path) for path in self._folder.pending.glob("*.toml") if SHA.fullmatch(path.stem)]
        return sorted((study for study in found if study is not None), key=lambda study: study.when)

    def count_round(self, sha: str) -> int:
        """Count one more answered round of a study, approved by hand or not; returns how many it has been."""
        with self._locked():
            count = self.rounds_used(sha) + 1
            self._folder.rounds.mkdir(exist_ok=True)
            write_bytes(self._folder.rounds / sha, str(count).encode(), under_lock=True)
        return count

    def rounds_used(self, sha: str) -> int:
        """How many rounds of a study were answered, all its runs together."""
        path = self._folder.rounds / _check_sha(sha)
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return 0
        if not (text.isdigit() and len(text) < 19):  # taken for 0, it would let the study go on for ever
            raise ParameterError(
                f"{path}: expected a number of rounds, got {text[:20]!r}. "
                "Write the number that the audit log shows, or approve the study afresh."
            )
        return int(text)

    def find(self, prefix: str) -> str:
        """The approved or pending study whose SHA-256 begins so."""
        start = prefix.strip().lower()
        if not SHA_PREFIX.fullmatch(start):
            raise ParameterError(
                f"Study {prefix[:80]!r}: expected 8 to 64 of the digits 0-9 and a-f. Copy the first 8."
            )
        known = {*self._read(), *(study.sha for study in self.pending())}
        found = sorted(sha for sha in known if sha.startswith(start))
        if not found:
            raise ParameterError(f"Study {start}: no approved or pending study begins so. Look at the list of studies.")
        if len(found) > 1:
            raise ParameterError(
                f"Study {start}: {len(found)} studies begin so. Write more of one: {', '.join(found)}."
            )
        return found[0]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """No other process changes anything here meanwhile."""
        try:
            with self._folder.approvals_lock.open("ab") as file:
                lock(file)
                yield
        except OSError as error:
            raise OutputError(
                f"{error.filename or self._folder.path}: cannot be written ({error.strerror}). "
                "Free the disk or give the right to write there."
            ) from error

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            found = parse_json(self._folder.approvals.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ParameterError(
                f"{self._folder.approvals}: cannot be read ({error.strerror}). Give the right to read it."
            ) from error
        except ValueError:
            found = {"damaged": None}
        if not all(map(_is_approval, found.items())):
            raise ParameterError(
                f"{self._folder.approvals}: is damaged. Put back a copy, or remove it and approve the studies anew."
            )
        return found

    def _write(self, approvals: dict[str, dict[str, str]]) -> None:
        data = json.dumps(approvals, indent=1).encode()
        write_bytes(self._folder.approvals, data, durable=True, under_lock=True)  # a power cut undoes no revocation

    def _forget(self, sha: str) -> None:
        for suffix in (".toml", ".json"):
            (self._folder.pending / f"{sha}{suffix}").unlink(missing_ok=True)


def sha_of(study: bytes) -> str:
    """The SHA-256 of a study's file, by which it is approved."""
    return sha256(study).hexdigest()


def _check_sha(sha: str) -> str:
    if not SHA.fullmatch(sha):  # it becomes a file's name
        raise ParameterError(f"Study {sha[:80]!r}: expected a SHA-256, 64 of the digits 0-9 and a-f.")
    return sha


def _encode_study(sha: str, text: str) -> bytes:
    """The study's bytes, if people can read all of it and the SHA-256 is its own."""
    if len(text) > LARGEST_STUDY or len(data := text.encode(errors="replace")) > LARGEST_STUDY:
        raise ProtocolError(f"Study {sha[:8]}: expected at most {LARGEST_STUDY} bytes, got more. It is not kept.")
    if sha_of(data) != sha:
        raise ProtocolError(f"Study {sha[:8]}: its text has another SHA-256. It is not kept: ask for the right file.")
    if (found := UNSEEN_CHARACTERS.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise ProtocolError(
            f"Study {sha[:8]}, line {line}: expected text that can be read, got the control character {found[0]!r}. "
            "It is not kept: ask for a file without."
        )
    return data


def _read_pending(path: Path) -> Pending | None:
    """The study in this file, unless it was altered or removed since it came: nobody should approve by that text."""
    try:
        if sha_of(path.read_bytes()) != path.stem:
            return None
        about = parse_json(path.with_suffix(".json").read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        about = {}  # a power cut may have emptied it; the study itself is sound
    asked_by, when = str(about.get("asked_by", "unknown")), str(about.get("when", "unknown"))
    return Pending(sha=path.stem, path=path, asked_by=asked_by, when=when)


def _is_approval(item: tuple[str, Any]) -> bool:
    sha, values = item
    shaped = isinstance(values, dict) and set(values) == {"name", "when", "by"}
    return bool(SHA.fullmatch(sha)) and shaped and all(isinstance(value, str) for value in values.values())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
