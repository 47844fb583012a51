"""A run's folder at the coordinator: what was asked, how far it is, how the last attempt ended, what came out.

    run.json          what the run is: study, nodes, sites, those left out, generation
    study.toml        the study file, as it was sent
    checkpoint.G/     after every round, of generation G: each site that is left out begins a new generation
    history.sqlite    rounds, sites and events, to be read while the run goes on
    quarantine/       answers that were not believed
    outcome.json      how the last attempt ended
    results/          what `silograph learn` would write

Each of them is written whole or not at all.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from silograph._util.files import make_folder, write_text, writing
from silograph.errors import CheckpointError
from silograph.federation.study_file import StudyFile, parse_study

RUNS = "runs"  # in the federation's folder
ABOUT, STUDY, OUTCOME, RESULTS, HISTORY = "run.json", "study.toml", "outcome.json", "results", "history.sqlite"

Ended = Literal["done", "trouble", "stopped", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ended."""

    attempt: str
    ended: Ended
    message: str = ""
    troubles: tuple[Mapping[str, str], ...] = ()  # site, kind, reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRun:
    """A run at the coordinator."""

    folder: Path
    name: str
    nodes: tuple[str, ...]
    sites: tuple[str, ...]
    left_out: Mapping[str, str]  # site → reason
    generation: int

    @property
    def run_id(self) -> str:
        """The name of the run that sites know: another one for each generation."""
        return f"{self.name}.{self.generation}"

    @property
    def checkpoint(self) -> Path:
        """Where rounds are written."""
        return self.folder / f"checkpoint.{self.generation}"

    @property
    def history(self) -> Path:
        """The database of rounds, sites and events."""
        return self.folder / HISTORY

    def study(self) -> StudyFile:
        """The study, as it was sent."""
        return parse_study((self.folder / STUDY).read_bytes(), source=str(self.folder / STUDY))

    def without(self, left_out: Mapping[str, str]) -> CoordinatorRun:
        """The run of the sites that are left, from its beginning."""
        changed = replace(
            self,
            sites=tuple(site for site in self.sites if site not in left_out),
            left_out={**self.left_out, **left_out},
            generation=self.generation + 1,
        )
        changed._write()
        return changed

    def end(self, outcome: Outcome) -> None:
        """Write down how an attempt ended."""
        write_text(self.folder / OUTCOME, json.dumps(asdict(outcome), indent=2) + "\n")

    def outcome(self) -> Outcome | None:
        """How the last attempt ended; nothing if none did."""
        path = self.folder / OUTCOME
        if not path.exists():
            return None
        data = json.loads(path.read_text(encoding="utf-8"))
        return Outcome(**data | {"troubles": tuple(data["troubles"])})

    def _write(self) -> None:
        about: dict[str, Any] = asdict(self)
        del about["folder"]
        write_text(self.folder / ABOUT, json.dumps(about, indent=2, ensure_ascii=False) + "\n")


def new_run(runs: Path, study: StudyFile, nodes: Sequence[str], sites: Sequence[str]) -> CoordinatorRun:
    """Make the folder of a new run. Its name is random: two runs of a study are two runs."""
    name = secrets.token_hex(8)
    folder = runs / name
    make_folder(folder)
    with writing(folder / STUDY) as beside:
        beside.write_bytes(study.text)
    run = CoordinatorRun(folder=folder, name=name, nodes=tuple(nodes), sites=tuple(sites), left_out={}, generation=1)
    run._write()
    return run


def open_run(folder: Path) -> CoordinatorRun:
    """The run in a folder."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return CoordinatorRun(
            folder=folder,
            name=about["name"],
            nodes=tuple(about["nodes"]),
            sites=tuple(about["sites"]),
            left_out=about["left_out"],
            generation=about["generation"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: the run cannot be read ({error}). Start it anew.") from error
