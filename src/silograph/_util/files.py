"""Files and folders that appear whole or not at all: written to the side, then renamed.

`write_bytes` raises OSError, for callers that say themselves what it means; all others raise OutputError. What is
`durable` outlasts a power cut: the disk is waited for, both for the content and for the folder's entry.
"""

import glob
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from silograph.errors import OutputError


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to; it takes the place of `path` when the block ends well."""
    try:
        with _replacing(path, beside := _free_name(path)):
            beside.touch(exist_ok=False)  # the system gives it the usual rights: to ask for its umask is to change it
            yield beside
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error


def write_bytes(path: Path, *pieces: bytes | memoryview, durable: bool = False, under_lock: bool = False) -> None:
    """Write a file of these pieces.

    Whoever holds a lock says `under_lock`: the side file then has a fixed name, so that crashes leave one at most.
    Otherwise the file is readable by its owner only.
    """
    beside = path.with_name(f"{path.name}.new") if under_lock else _file_beside(path)
    with _replacing(path, beside, durable=durable), beside.open("wb") as file:
        for piece in pieces:
            file.write(piece)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def write_text(path: Path, text: str) -> Path:
    """Write a text file."""
    with writing(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


def write_json(path: Path, content: object) -> Path:
    """Write a JSON file. In ASCII, because a stranger's text may hold half characters, which no file can."""
    return write_text(path, json.dumps(content, indent=2) + "\n")


@contextmanager
def writing_folder(path: Path, *, replace: bool) -> Iterator[Path]:
    """A folder beside `path` to fill; it becomes `path` when the block ends well.

    With `replace`, an old folder of that name goes only then, and what it held beyond the new files is kept.
    """
    temporary = _folder_beside(path)
    try:
        yield temporary
        if replace and path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent)) / path.name
            path.replace(old)
            temporary.replace(path)
            _take_along(old, path)
        else:
            temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def bring_back(path: Path) -> None:
    """Where `writing_folder` was killed after its first rename, bring the old folder back, or what is kept of it."""
    for aside in path.parent.glob(f".{glob.escape(path.name)}.old.*"):
        if not (old := aside / path.name).is_dir():
            continue
        if path.exists():  # killed after the second rename
            _take_along(old, path)
        else:
            old.replace(path)
            aside.rmdir()


def _take_along(old: Path, new: Path) -> None:
    """What the old folder held beyond the new files goes with these; the rest of it goes."""
    for kept in [entry for entry in old.iterdir() if not (new / entry.name).exists()]:
        kept.replace(new / kept.name)
    shutil.rmtree(old.parent)


def make_folder(path: Path) -> None:
    """Make the folder and those above it, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be made ({error.strerror}). Choose another place.") from error


def check_writable(path: Path) -> None:
    """Raise when nothing can be made beside `path`; leaves nothing behind."""
    made = [parent for parent in path.parents if not parent.exists()]
    _folder_beside(path).rmdir()
    for parent in made:
        parent.rmdir()


@contextmanager
def _replacing(path: Path, beside: Path, *, durable: bool = False) -> Iterator[None]:
    """Move the file `beside` to `path` when the block ends well, and remove it when not."""
    try:
        yield
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if durable and hasattr(os, "O_DIRECTORY"):  # elsewhere, folders cannot be brought to the disk
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _file_beside(path: Path) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    return Path(name)


def _folder_beside(path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        (beside := _free_name(path)).mkdir()
        return beside
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error


def _free_name(path: Path) -> Path:
    return path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")


def sha256_of(path: Path) -> str:
    """The checksum of a file, by which it is known again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
