"""What is to be audited: a study file, a run's folder, or nothing, which stands for a self-made consortium."""

from pathlib import Path
from typing import Any

from silograph._util.documents import read_bytes
from silograph._util.plain import PlainDataError, from_plain
from silograph.audit.scene import Scene
from silograph.errors import ParameterError
from silograph.federation.study_file import LARGEST_STUDY, parse_study
from silograph.privacy.settings import Privacy
from silograph.runs.reader import read_run

FEWEST = 3  # sites that are taken where a study does not name its own


def scene_of(target: Path | None, *, trials: int) -> Scene:
    """The settings that the attacks are run against."""
    if target is None:
        return Scene(trials=trials)
    return _scene_of_run(target, trials) if target.is_dir() else _scene_of_study(target, trials)


def _scene_of_study(path: Path, trials: int) -> Scene:
    data = read_bytes(path, most=LARGEST_STUDY, cure="Give a study file or the folder of a run, or nothing.")
    study = parse_study(data, source=str(path))
    settings = study.settings
    return Scene(
        title=f"the study {study.name!r}",
        privacy=settings.privacy,
        method=settings.method,
        sums=settings.sums,
        n_sites=FEWEST if study.sites is None else len(study.sites),
        everything=False,
        trials=trials,
    )


def _scene_of_run(folder: Path, trials: int) -> Scene:
    run = read_run(folder)
    if run.record.kind == "table":
        raise ParameterError(
            f"{folder}: is a run over one table, from which nothing was sent. There is no one to attack."
        )
    asked = run.parameters
    owners = {silo.name if silo.site is None else silo.site for silo in run.record.silos}
    return Scene(
        title=f"the run {run.name!r}",
        privacy=privacy_of(asked["privacy"]),
        method=str(asked["method"]),
        sums=int(asked.get("sums", 1)),
        n_sites=len(owners),
        everything=False,
        trials=trials,
    )


def privacy_of(recorded: Any) -> Privacy:
    """The privacy that a record tells of."""
    try:
        return from_plain(Privacy, recorded)
    except PlainDataError as error:
        raise ParameterError(
            f"run.json, parameters: expected the privacy of the run, got another ({error})."
        ) from error
