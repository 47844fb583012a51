"""What was chosen for a study, kept while its run is unfinished: a run that goes on does not choose again."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from silograph._util.files import write_text
from silograph._util.plain import PlainDataError, from_plain
from silograph.engine.study import TriedCoupling
from silograph.errors import CheckpointError

CHOICES = "choices.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Numbers that the settings left open."""

    coupling: float | None = None
    curve: tuple[TriedCoupling, ...] = ()
    degree_alone: float | None = None  # of silos alone, from which α and β follow; None: set-up's own


def write_choices(folder: Path, choices: Choices) -> None:
    """Keep them in a run's checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CHOICES, json.dumps(asdict(choices)) + "\n")


def read_choices(folder: Path) -> Choices | None:
    """Those of an earlier attempt; None where it did not come so far."""
    path = folder / CHOICES
    if not path.is_file():
        return None
    try:
        return from_plain(Choices, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, PlainDataError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}). Start the run anew.") from error
