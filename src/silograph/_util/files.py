"""Results appear whole or not at all: written to the side, then renamed."""

from __future__ import annotations

import os
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
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing_folder(path: Path, *, replace: bool) -> Iterator[Path]:
    """A folder beside `path` to fill; it becomes `path` when the block ends well.

    With `replace`, an old folder of that name goes only then, and what it held beyond the new files is kept.
    """
    temporary = _folder_beside(path)
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if replace and path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent)) / path.name
            path.replace(old)
            temporary.replace(path)
            for kept in [entry for entry in old.iterdir() if not (path / entry.name).exists()]:
                kept.replace(path / kept.name)
            shutil.rmtree(old.parent)
        else:
            temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Make the folder and those above it, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be made ({error.strerror}). Choose another place.") from error


def write_text(path: Path, text: str) -> Path:
    """Write a text file, whole or not at all."""
    with writing(path) as beside:
        beside.write_text(text, encoding="utf-8")
    return path


def check_writable(path: Path) -> None:
    """Raise when nothing can be made beside `path`; leaves nothing behind."""
    made = [parent for parent in path.parents if not parent.exists()]
    _folder_beside(path).rmdir()
    for parent in made:
        parent.rmdir()


def _folder_beside(path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
