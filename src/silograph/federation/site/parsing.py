"""What a request says, and what an answer holds, as far as the site's service and its log need to know."""

import math
from collections.abc import Mapping
from typing import Any

from silograph._util.documents import parse_json
from silograph.federation.envelope import VerifiedMessage
from silograph.federation.refusals import Refused
from silograph.federation.site.run import LEARN
from silograph.federation.study_file import StudyFile, parse_study
from silograph.methods.common.registry import UnknownMethodError
from silograph.methods.common.setup import SCALARS
from silograph.protocol.messages import Update, parts_of
from silograph.protocol.sums import Subtotal


def parse_hello(request: VerifiedMessage) -> tuple[StudyFile, tuple[str, ...], tuple[str, ...]]:
    """The study, the nodes and the silos that a hello names."""
    try:
        about = parse_json(request.body)
        study = parse_study(about["study"].encode(), source="study")
        nodes, silos = (tuple(about[name]) for name in ("nodes", "silos"))
    except UnknownMethodError as error:  # of a package that this site does not have
        raise Refused("method", str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused("malformed", f"the study cannot be read: {error}") from error
    if not all(isinstance(name, str) and name for name in (*nodes, *silos)) or len(set(silos)) != len(silos):
        raise Refused("malformed", "nodes and silos must be names, each silo once")
    if request.head["to"] not in silos:
        raise Refused("malformed", "this site is not among the silos of the run")
    if study.sites is not None and not set(silos) <= set(study.sites):
        raise Refused("sites", f"{', '.join(silos)}: the study names others")
    if study.settings.privacy.masked and silos != study.sites:
        raise Refused("sites", f"{', '.join(silos)}: a masked sum is over all sites of the study, in its order")
    if len(silos) < study.policy.needed(len(study.sites or silos)):
        raise Refused("sites", f"{len(silos)} sites are fewer than the study promises")
    if study.nodes is not None and study.nodes != nodes:
        raise Refused("nodes", "the nodes sent along are not those of the study file")
    return study, nodes, silos


def plain_entries(head: Mapping[str, Any], *names: str) -> dict[str, str | int]:
    """Those entries of a head that the log can hold."""
    found = {name: head[name] for name in names if name in head}
    fitting = {name: isinstance(value, int) and abs(value) < 2**63 for name, value in found.items()}
    return {name: value for name, value in found.items() if isinstance(value, str) or fitting[name]}


def parse_scalars(request: VerifiedMessage, stage: str) -> dict[str, float]:
    """What set-up found, once it has ended: finite numbers, none negative, α and β above 0."""
    scalars, names = request.head.get("scalars", {}), SCALARS if stage == LEARN else ()
    if not isinstance(scalars, dict) or set(scalars) != set(names):
        raise Refused("malformed", f"expected the model's parameters {', '.join(names) or 'not yet'}")
    for name, value in scalars.items():
        if type(value) is not float or not 0 <= value < math.inf or (value == 0 and name in ("alpha", "beta")):
            raise Refused("malformed", f"the model's parameter {name} is no number that it can be")
    return scalars


def parse_n_silos(request: VerifiedMessage) -> int:
    """How many silos all sites have."""
    n_silos = request.head.get("n_silos")
    if type(n_silos) is not int:
        raise Refused("malformed", "expected how many silos take part")
    return n_silos


def contents_of(answer: Update | Subtotal, *, masked: bool = False) -> str:
    """The names in an answer and how many numbers each has, never the numbers."""
    parts = parts_of(answer) if isinstance(answer, Update) else answer.parts
    told = answer.reported if isinstance(answer, Update) else answer.reported.get(answer.source, {})
    sizes = [f"{name} ({1 if isinstance(part, float | int) else len(part)})" for name, part in parts.items()]
    text = ", ".join([*sizes, *(f"{name} (1, reported)" for name in told)])
    if isinstance(answer, Update):
        return text
    over = f" over {answer.n_silos} tables" if answer.n_silos > 1 or not masked else ""
    return f"{'a masked sum' if masked else 'the sum'}{over}: {text}"
