"""The studies that a site approved: each by the SHA-256 of its file, for one version of the site's table.

Not one byte of either can change afterwards. A study that was asked for and not approved waits in the site's folder for
people to read it; when too many wait, no more are kept, and none makes room for another. The rounds that a study was
answered are counted over all its runs. `SiteFolder` says where all of this lies.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from silograph._util.documents import parse_json
from silograph._util.files import write_bytes
from silograph._util.locks import locked
from silograph.errors import ParameterError, ProtocolError
from silograph.federation.folders import SiteFolder
from silograph.federation.study_file import LARGEST_STUDY

MOST_PENDING, LONGEST_TEXT = 50, 500
SHA = re.compile(r"[0-9a-f]{64}")
# People read a study in a terminal before they approve it. These move the cursor or turn the order of letters about,
# so that they would see another study than the one they approve. TOML needs none of them.
# What has no shape of its own, turns letters about, or ends a line for some readers and not for TOML
UNSEEN_CHARACTERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\r(?!\n)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A study that this site answers."""

    sha: str
    name: str
    when: str  # UTC
    by: str
    table: str  # the version that it holds for
    despite: bool  # although answers for this version show the rows in which it differs from earlier ones


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

    def get(self, sha: str) -> Approval | None:
        """The approval of exactly this study, if people of this site gave one."""
        values = self._read().get(_check_sha(sha))
        return None if values is None else Approval(sha=sha, **values)

    def approve(
        self, study: bytes, *, name: str, by: str, table: str, despite: bool = False, fresh: bool = False
    ) -> None:
        """Answer this study from now on, for this version of the table; `fresh`: and count its rounds from 0 again."""
        sha = sha_of(study)
        check_readable(sha, study.decode(errors="replace"))
        with locked(self._folder.approvals_lock):
            about = {"name": name[:LONGEST_TEXT], "when": _now(), "by": by[:LONGEST_TEXT]}
            approvals = self._read() | {sha: {**about, "table": _check_sha(table), "despite": despite}}
            if fresh:
                (self._folder.rounds / sha).unlink(missing_ok=True)
            self._folder.approved.mkdir(exist_ok=True)
            write_bytes(self._folder.approved / f"{sha}.toml", study, under_lock=True)
            self._write(approvals)
            self._forget(sha)

    def revoke(self, sha: str) -> None:
        """Answer this study no more. Its rounds stay counted."""
        with locked(self._folder.approvals_lock):
            kept = self._read()
            if kept.pop(_check_sha(sha), None) is None:
                raise ParameterError(f"Study {sha} is not approved at this site: there is nothing to revoke.")
            self._write(kept)

    def approved(self) -> list[Approval]:
        """The approved studies, oldest approval first."""
        found = [Approval(sha=sha, **values) for sha, values in self._read().items()]
        return sorted(found, key=lambda approval: approval.when)

    def note_pending(self, sha: str, text: str, *, asked_by: str) -> bool:
        """Keep a study for people to read; whether it waits now. One more than the most that may wait is not kept."""
        data = _encode_study(_check_sha(sha), text)
        with locked(self._folder.approvals_lock):
            path = self._folder.pending / f"{sha}.toml"
            if path.exists() and _read_pending(path) is not None:
                return True
            self._folder.pending.mkdir(exist_ok=True)
            if len(self.pending()) >= MOST_PENDING:
                return False
            about = json.dumps({"asked_by": asked_by[:LONGEST_TEXT], "when": _now()})
            write_bytes(path.with_suffix(".json"), about.encode(), under_lock=True)
            write_bytes(path, data, under_lock=True)  # last: with it, the study is there
        return True

    def reject(self, *shas: str) -> None:
        """Let these studies wait no more."""
        with locked(self._folder.approvals_lock):
            for sha in shas:
                self._forget(_check_sha(sha))

    def pending(self) -> list[Pending]:
        """The studies that wait for approval, oldest first."""
        found = [_read_pending(path) for path in self._folder.pending.glob("*.toml") if SHA.fullmatch(path.stem)]
        return sorted((study for study in found if study is not None), key=lambda study: study.when)

    def count_round(self, sha: str) -> int:
        """Count one more answered round of a study, approved by hand or not; returns how many it has been."""
        with locked(self._folder.approvals_lock):
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

    def find(self, sha: str) -> Path:
        """The file of the study with this SHA-256, which waits or was approved."""
        sha = sha.strip().lower()  # all of it: another study whose first digits are the same is soon found
        if not SHA.fullmatch(sha):
            raise ParameterError(
                f"Study {sha[:80]!r}: expected a file, or a whole SHA-256, 64 digits 0-9 and a-f. Copy all of it."
            )
        known = {study.sha: study.path for study in self.pending()}
        path = known.get(sha, self._folder.approved / f"{sha}.toml")
        if not path.exists() or sha_of(path.read_bytes()) != sha:
            raise ParameterError(f"Study {sha}: neither waits nor was approved. Look at the list of studies.")
        return path

    def _read(self) -> dict[str, dict[str, Any]]:
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
                f"{self._folder.approvals}: is damaged, or of an earlier silograph, whose approvals were not for one "
                "version of the table. Move it away and approve the studies anew."
            )
        return found

    def _write(self, approvals: dict[str, dict[str, Any]]) -> None:
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
        raise ProtocolError(f"Study {sha}: expected at most {LARGEST_STUDY} bytes, got more. It is not kept.")
    if sha_of(data) != sha:
        raise ProtocolError(f"Study {sha}: its text has another SHA-256. It is not kept: ask for the right file.")
    check_readable(sha, text)
    return data


def check_readable(sha: str, text: str) -> None:
    """Raise for a text of which a terminal would show another one."""
    if (found := UNSEEN_CHARACTERS.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise ProtocolError(
            f"Study {sha}, line {line}: expected text that can be read, got the control character {found[0]!r}. "
            "It is not kept: ask for a file without."
        )


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
    kinds = {"name": str, "when": str, "by": str, "table": str, "despite": bool}
    shaped = isinstance(values, dict) and set(values) == set(kinds)
    return bool(SHA.fullmatch(sha)) and shaped and all(isinstance(values[name], kinds[name]) for name in kinds)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
