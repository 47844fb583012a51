"""Checkpoints: what a run needs to go on, written each round, whole or not at all.

A checkpoint is a folder. Arrays go to segments, one file per round with the arrays that are new; a manifest, one small
JSON file, says how everything else looks and where each array lies. An array that was written once is only pointed to
in later rounds, so that a long state costs no more per round than a short one. The manifest is renamed into place
last: before, the round has not happened; after, it has.
"""

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from silograph._util.files import write_bytes
from silograph.errors import CheckpointError, OutputError
from silograph.protocol.packing import Piece, pack, packed_size, unpack

CHECKPOINT_FORMAT = 5
NUMBER = "[0-9]" * 8
MANIFEST, SEGMENT = f"{NUMBER}.json", f"{NUMBER}.segment"  # other files in the folder are not ours
ARRAY = "\x00array"  # no key of a state starts so


class Checkpoint:
    """The checkpoint of one run in one folder."""

    def __init__(self, folder: Path, *, run_id: str) -> None:
        self._folder = folder
        self._run_id = run_id
        self._known: dict[int, tuple[np.ndarray, list[Any]]] = {}  # id → the array, kept alive, and where it lies
        self._round = 0

    def save(self, tree: dict[str, Any]) -> None:
        """Write one more round. Arrays that were written may not be altered later: replace them."""
        number = self._round + 1
        segment = _Segment(f"{number:08d}.segment", self._known)
        body = segment.describe(tree)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if segment.pieces:
                write_bytes(self._folder / segment.name, *segment.pieces, durable=True)
            manifest = {"format": CHECKPOINT_FORMAT, "run": self._run_id, "round": number, "tree": body}
            text = json.dumps(manifest | {"checksum": _checksum(manifest)})
            write_bytes(self._manifest(number), text.encode(), durable=True)
            self._round, self._known = number, segment.known  # not before: a round that failed has not happened
            self._tidy()
        except OSError as error:
            raise OutputError(f"{self._folder}: the checkpoint cannot be written ({error.strerror}).") from error

    def load(self) -> dict[str, Any] | None:
        """The last round that was written whole; nothing where none was."""
        manifests = sorted(self._folder.glob(MANIFEST))
        if not manifests:
            return None
        path = manifests[-1]
        manifest = _read_manifest(path)
        if manifest.get("format") != CHECKPOINT_FORMAT:
            raise CheckpointError(f"{path}: made by another version of silograph. Start the run anew.")
        if manifest.get("run") != self._run_id:
            raise CheckpointError(
                f"{path}: belongs to a run with other data or other settings. "
                "Resume with the files and options it was started with, or start a new run elsewhere."
            )
        checksum = manifest.pop("checksum", None)
        if checksum != _checksum(manifest):
            raise CheckpointError(f"{path}: is damaged. Start the run anew.")
        self._round = int(manifest["round"])
        return dict(self._build(manifest["tree"], {}))

    def _build(self, node: Any, segments: dict[str, bytes]) -> Any:
        if isinstance(node, list):
            return [self._build(child, segments) for child in node]
        if not isinstance(node, dict):
            return node
        if ARRAY in node:
            return self._array(node[ARRAY], segments)
        return {key: self._build(child, segments) for key, child in node.items()}

    def _array(self, where: list[Any], segments: dict[str, bytes]) -> np.ndarray:
        name, offset, shape, checksum, count = where
        path = self._folder / name
        if name not in segments:
            try:
                segments[name] = path.read_bytes()
            except OSError as error:
                raise CheckpointError(f"{path}: cannot be read ({error.strerror}). Start the run anew.") from error
        size = packed_size(int(np.prod(shape)), count)
        piece = memoryview(segments[name])[offset : offset + size]
        if len(piece) != size or zlib.crc32(piece) != checksum:
            raise CheckpointError(f"{path}: is damaged. Start the run anew.")
        array = unpack(piece, int(np.prod(shape)), count).reshape(shape)
        self._known[id(array)] = (array, where)
        return array

    def _manifest(self, number: int) -> Path:
        return self._folder / f"{number:08d}.json"

    def _tidy(self) -> None:
        """Remove earlier manifests, and segments that no kept array lies in."""
        for path in sorted(self._folder.glob(MANIFEST))[:-1]:
            path.unlink()
        for path in self._folder.glob(f".{NUMBER}.*"):  # half-written when an earlier process was killed
            path.unlink()
        in_use = {where[0] for _, where in self._known.values()}
        for path in self._folder.glob(SEGMENT):
            if path.name not in in_use:
                path.unlink()


class _Segment:
    """The arrays that are new in this round, and the tree with every array replaced by where it lies."""

    def __init__(self, name: str, known: dict[int, tuple[np.ndarray, list[Any]]]) -> None:
        self.name = name
        self.pieces: list[Piece] = []
        self.size = 0
        self.known: dict[int, tuple[np.ndarray, list[Any]]] = {}
        self._before = known

    def describe(self, node: Any) -> Any:
        if isinstance(node, dict):
            return {key: self.describe(child) for key, child in node.items()}
        if isinstance(node, list | tuple):
            return [self.describe(child) for child in node]
        if isinstance(node, np.ndarray):
            return {ARRAY: self._place(node)}
        return node.item() if isinstance(node, np.generic) else node

    def _place(self, array: np.ndarray) -> list[Any]:
        found = self.known.get(id(array)) or self._before.get(id(array))
        if found is None:
            pieces, count = pack(array)
            checksum = 0
            for piece in pieces:
                checksum = zlib.crc32(piece, checksum)
            found = (array, [self.name, self.size, list(array.shape), checksum, count])
            self.pieces += pieces
            self.size += packed_size(array.size, count)
        self.known[id(array)] = found
        return found[1]


def _checksum(manifest: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(manifest).encode())


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}). Start the run anew.") from error
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{path}: is no checkpoint. Start the run anew.")
    return manifest
