"""A run at the coordinator, kept in a folder: its study, its progress, the end of its last attempt, its results.

    about.json        the run: its nodes, its sites, those left out, its generation
    study.toml        the study file, as it was sent
    checkpoint.G/     after every round, of generation G: sites that are left out begin a new generation, and so do
                      new keys of a masked study; `keys` there: the sites' keys, once all sites have them
    history.sqlite    rounds, sites and events, to be read while the run goes on
    quarantine/       answers that were not believed
    outcome.json      how the last attempt ended
    results/          the same files that `silograph learn` writes
    lock              held by the process that conducts the run
    supervisor        held by the conductor while it brings the run to its end
    order.json, watch.json, end.json    see `orders`

Each of them is written whole or not at all.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from silograph._util.documents import parse_json
from silograph._util.files import write_json, writing_folder
from silograph.errors import CheckpointError
from silograph.federation.folders import FederationFolder
from silograph.federation.names import RUN_NAME, new_run_name
from silograph.federation.study_file import StudyFile, parse_study

ABOUT, STUDY, OUTCOME = "about.json", "study.toml", "outcome.json"

Ended = Literal["done", "trouble", "stopped", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ended."""

    attempt: str
    ended: Ended
    message: str = ""
    troubles: tuple[Mapping[str, str], ...] = ()  # site, kind, reason, code


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRun:
    """A run at the coordinator."""

    folder: Path
    name: str
    title: str  # of the study
    nodes: tuple[str, ...]
    sites: tuple[str, ...]
    left_out: Mapping[str, str]  # site → reason
    generation: int
    begun: float  # seconds since 1970

    @property
    def federation(self) -> FederationFolder:
        """The folder of which `runs/` holds this run."""
        return FederationFolder(self.folder.parents[1])

    @property
    def run_id(self) -> str:
        """The name of the run that sites know: another one for each generation."""
        return f"{self.name}.{self.generation}"

    @property
    def checkpoint(self) -> Path:
        """Where rounds are written."""
        return self.folder / f"checkpoint.{self.generation}"

    @property
    def keys(self) -> Path:
        """The sites' signed keys for a masked sum; there once all sites have them."""
        return self.checkpoint / "keys"

    @property
    def history(self) -> Path:
        """The database of rounds, sites and events."""
        return self.folder / "history.sqlite"

    @property
    def quarantine(self) -> Path:
        """Where answers are kept that were not believed."""
        return self.folder / "quarantine"

    @property
    def results(self) -> Path:
        """The graphs and the record; there once the run is done."""
        return self.folder / "results"

    @property
    def lock(self) -> Path:
        """Held by the process that conducts the run."""
        return self.folder / "lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the conductor while it brings the run to its end."""
        return self.folder / "supervisor"

    def study(self) -> StudyFile:
        """The study, as it was sent."""
        return parse_study((self.folder / STUDY).read_bytes(), source=str(self.folder / STUDY))

    def leave_out(self, reasons: Mapping[str, str]) -> "CoordinatorRun":
        """Begin the run anew without these sites, each left out for a reason."""
        changed = replace(
            self,
            sites=tuple(site for site in self.sites if site not in reasons),
            left_out={**self.left_out, **reasons},
            generation=self.generation + 1,
        )
        changed._write()
        return changed

    def begin_anew(self) -> "CoordinatorRun":
        """Begin the run anew with the same sites: those of a masked study make new keys."""
        changed = replace(self, generation=self.generation + 1)
        changed._write()
        return changed

    def write_outcome(self, outcome: Outcome) -> None:
        """Write down how an attempt ended."""
        write_json(self.folder / OUTCOME, asdict(outcome))

    def outcome(self) -> Outcome | None:
        """How the last attempt ended; nothing if none did."""
        path = self.folder / OUTCOME
        if not path.exists():
            return None
        try:
            data = parse_json(path.read_bytes())
            return Outcome(**data | {"troubles": tuple(data["troubles"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error}). Remove it; the run then goes on.") from error

    def _write(self) -> None:
        about: dict[str, Any] = asdict(self)
        del about["folder"]
        write_json(self.folder / ABOUT, about)


def new_run(
    runs: Path, study: StudyFile, nodes: Sequence[str], sites: Sequence[str], *, name: str | None = None
) -> CoordinatorRun:
    """Make the folder of a new run, whole or not at all. Its name is random: two runs of a study are two runs."""
    name = name or new_run_name()
    run = CoordinatorRun(
        folder=runs / name,
        name=name,
        title=study.name,
        nodes=tuple(nodes),
        sites=tuple(sites),
        left_out={},
        generation=1,
        begun=time.time(),
    )
    with writing_folder(run.folder, replace=False) as beside:
        (beside / STUDY).write_bytes(study.text)
        replace(run, folder=beside)._write()
    return run


def open_run(folder: Path) -> CoordinatorRun:
    """The run in a folder."""
    try:
        about = parse_json((folder / ABOUT).read_bytes())
        lists = {name: tuple(about[name]) for name in ("nodes", "sites")}
        return CoordinatorRun(folder=folder, **about | lists)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{folder}: the run cannot be read ({error}). Start it anew.") from error


def run_folders(federation: FederationFolder) -> list[Path]:
    """The folders of all runs of a federation, the one that was changed last at the end."""
    paths = [path for path in federation.runs.glob(f"*/{ABOUT}") if RUN_NAME.fullmatch(path.parent.name)]
    return [path.parent for path in sorted(paths, key=lambda path: path.stat().st_mtime)]
