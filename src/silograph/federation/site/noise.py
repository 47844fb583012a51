"""Noise at a site: drawn once for a study, a version of the tables and a cohort, kept, and used again for just these.

Two draws on the same data could be averaged, and each would have to be paid for. So what is to leave is written down
with its noise before it is used. The same study, asked of the same data together with the same sites, in whatever run,
gets the same bytes again. Anything else gets fresh noise. A file that cannot be read is never drawn anew.

Where sums are masked, the same means: of all sites. If one site's data changed and the others' shares stayed, these
would cancel in the difference of the two sums. So each site has a random name for its data, says it to the others with
its key (keys.py), and draws for all the names together.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path

import numpy as np

from silograph._util.files import write_bytes
from silograph._util.locks import Lock, locked
from silograph._util.types import Vector
from silograph.engine.noise import noisy_silo
from silograph.errors import OutputError
from silograph.federation.keys import DATA_BYTES, digest_of_names
from silograph.federation.refusals import Refused
from silograph.federation.site.ledger import Reading
from silograph.federation.site.silos import OwnSilos
from silograph.federation.study_file import StudyFile
from silograph.graph.pairs import Pairs
from silograph.privacy.noise import Noise, plan_noise
from silograph.protocol.fixed import add_vector, zeros
from silograph.protocol.messages import Field, Update, parts_of
from silograph.protocol.sums import Subtotal, open_parts
from silograph.protocol.units import Units

MAGIC = b"silograph noise 1\n"
DRAW_NAME = 32  # hexadecimal digits of its checksum
Noisy = Mapping[str, Vector]  # numbers with noise, by what they are called


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseKey:
    """What a draw is for."""

    study: str  # SHA-256
    version: str  # of the tables, as the ledger calls it
    cohort: tuple[str, ...]  # the sites in order
    nodes: str  # digest of their names in order, which the study may leave to a file
    together: str = ""  # of masked sums, a name for all sites' data

    @classmethod
    def of(
        cls, study: StudyFile, version: str, cohort: Sequence[str], nodes: Sequence[str], together: str = ""
    ) -> "NoiseKey":
        """The key of a study for a version of the site's data."""
        read, names = Reading.of(study).version(version), digest_of_names(nodes)
        return cls(study=study.sha256, version=read, cohort=tuple(cohort), nodes=names, together=together)

    @property
    def name(self) -> str:
        """The name of its file."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()


class KeptNoise:
    """The draws of one site, one file each, readable by the site's user only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: NoiseKey, draw: Callable[[], Noisy]) -> Noisy:
        """What was kept for this key; if nothing was, what `draw` gives, kept before it is returned."""
        path = self._folder / key.name
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = Lock(self._folder / "lock")
            if not lock.take(wait=5.0):
                raise Refused("busy", f"{self._folder}: another process of this site draws noise")
            try:
                if not path.exists():
                    write_bytes(path, *_encode(key, draw()), durable=True)
                return _decode(path, path.read_bytes(), key)
            finally:
                lock.release()
        except OSError as error:
            raise OutputError(f"{path}: noise cannot be kept or read ({error.strerror}).") from error

    def data_name(self, key: NoiseKey) -> bytes:
        """A random name for the data of this key: kept, the same in every run, and another for other data."""
        path = self._folder / f"{key.name}.data"
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self._folder / "names.lock"):
            if not path.exists() or path.stat().st_size != DATA_BYTES:
                write_bytes(path, secrets.token_bytes(DATA_BYTES), durable=True)
            return path.read_bytes()

    def name_of(self, key: NoiseKey) -> str:
        """What the budget calls a draw: noise that was lost and drawn anew has another name, and is paid for anew."""
        path = self._folder / key.name
        return path.read_bytes()[len(MAGIC) :][:DRAW_NAME].decode() if path.exists() else ""


def _encode(key: NoiseKey, noisy: Noisy) -> list[bytes]:
    about = {**asdict(key), "shapes": {name: list(vector.shape) for name, vector in noisy.items()}}
    body = [json.dumps(about).encode() + b"\n", *(vector.astype("<f8").tobytes() for vector in noisy.values())]
    return [MAGIC, hashlib.sha256(b"".join(body)).hexdigest().encode() + b"\n", *body]


def _decode(path: Path, data: bytes, key: NoiseKey) -> Noisy:
    """What a file holds; refuses one that is damaged, or another's: to draw anew would be a second draw."""
    head, checksum, body = data[: len(MAGIC)], data[len(MAGIC) :][:64], data[len(MAGIC) + 65 :]
    if head != MAGIC or hashlib.sha256(body).hexdigest().encode() != checksum:
        raise Refused(
            "internal",
            f"{path}: the noise that was drawn for this study is damaged. Bring the file back from a copy; without it "
            "this study cannot be answered again for these data",
        )
    text, _, numbers = body.partition(b"\n")
    about = json.loads(text)
    shapes = about.pop("shapes")
    if about != {**asdict(key), "cohort": list(key.cohort)}:
        raise Refused("internal", f"{path}: the noise in this file was drawn for another study, version or cohort")
    sizes = [prod(shape) for shape in shapes.values()]
    parts = np.split(np.frombuffer(numbers, dtype="<f8").astype(np.float64), np.cumsum(sizes)[:-1])
    return dict(zip(shapes, parts, strict=True))


def plan_at_site(study: StudyFile, pairs: Pairs, n_sites: int, n_tables: int) -> Noise:
    """The noise that this site adds: its share where sums are masked, else all of it."""
    privacy = study.settings.privacy
    return plan_noise(
        privacy,
        n_nodes=pairs.n_nodes,
        n_sites=n_sites,
        min_samples=privacy.min_samples,
        shared=privacy.masked,
        n_tables=n_tables,
    )


def protect_answer(
    answer: Update | Subtotal, fields: Mapping[str, Field], units: Units, pairs: Pairs, noise: Noise, kept: KeptNoise,
    key: NoiseKey,
) -> Update | Subtotal:  # fmt: skip
    """The site's sum, with noise on what does not leave without."""
    names = [name for name, field in fields.items() if field.noisy]
    if isinstance(answer, Update):
        parts = parts_of(answer)
    else:
        parts = open_parts({name: answer.parts[name] for name in names}, fields, units)
    noisy = kept.get(key, lambda: {name: noise.add(np.asarray(parts[name]), pairs) for name in names})
    if isinstance(answer, Update):
        return replace(answer, _parts={**parts, **noisy})
    limbs = {name: zeros(vector.size) for name, vector in noisy.items()}
    for name, vector in noisy.items():
        add_vector(limbs[name], vector, units.exponents[fields[name].unit], fields[name].rounding)
    return replace(answer, parts={**answer.parts, **limbs})


def protect_silos(own: OwnSilos, noise: Noise, kept: KeptNoise, key: NoiseKey) -> OwnSilos:
    """The site's silos, each one's costs with all of the noise: whatever a method makes of them is as private."""
    noisy = kept.get(key, lambda: {silo.name: noise.add(silo.cost, silo.pairs) for silo in own.silos})
    return replace(own, silos=tuple(noisy_silo(silo, noisy[silo.name]) for silo in own.silos))
