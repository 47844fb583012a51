"""What is doubtful of a site's own tables, for its own people: shown before they approve a study, and never sent."""

from silograph._util.checks import list_names
from silograph.analysis.doubts import Doubt, list_remarks
from silograph.errors import SilosError
from silograph.federation.refusals import Refused
from silograph.federation.site.data import SiteData
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.silos import OwnSilos, read_silos
from silograph.federation.study_file import StudyFile


def doubts_at_home(settings: SiteSettings, data: SiteData, study: StudyFile) -> tuple[Doubt, ...]:
    """The doubts about the tables that this study would be answered for."""
    try:
        own = read_silos(settings, data, study, study.nodes or data.names)
    except Refused as error:
        raise SilosError(error.detail) from error
    found = (_outside(own, study), _hidden(own, settings), *own.doubts(study))
    return tuple(doubt for doubt in found if doubt is not None)


def _outside(own: OwnSilos, study: StudyFile) -> Doubt | None:
    if study.scale is None:
        return None
    low, high = study.scale
    scales = {silo.name: float(silo.cost.mean()) for silo in own.silos}
    out = {name: f"{scale:.3g}" for name, scale in scales.items() if not low <= scale <= high}
    if not out:
        return None
    so = ", as it goes by the mean of all tables" if len(own.silos) > 1 else ""
    text = (
        f"Mean squared differences are outside the study's range ({low:g} to {high:g}): {list_remarks(out)}. Your site "
        f"will {'' if not low <= own.scale <= high else 'not '}refuse{so}. Convert to the study's units, or ask for "
        "another range."
    )
    return Doubt("range", tuple(out), text)


def _hidden(own: OwnSilos, settings: SiteSettings) -> Doubt | None:
    if not own.hidden:
        return None
    few = f"fewer than {settings.min_tables} of your tables have them, alone or with another node"
    text = f"Nodes that are not learned with here, as {few}: {list_names(own.hidden)}."
    return Doubt("hidden", (), text)
