"""What a user says of noise, by name, as the privacy of a study whose silos are all in this process."""

from collections.abc import Mapping, Sequence
from typing import Any

from silograph.errors import ParameterError
from silograph.methods.common.registry import spec_of
from silograph.privacy.settings import OPEN, Privacy

SETTINGS: Mapping[str, Any] = {  # with their defaults
    "epsilon": None, "delta": None, "unit": "row", "rows": "unit", "collusion": 1, "masked": None, "min_samples": None,
    "centres": None, "scales": None,
}  # fmt: skip


def privacy_of(method: str, given: Mapping[str, Any]) -> Privacy:
    """The privacy that the settings say; masks are the default of methods that open one sum."""
    told = {name: value for name, value in given.items() if value is not None and not _is(value, SETTINGS[name])}
    if "epsilon" not in told and "delta" not in told:
        for name in told:
            raise ParameterError(f"{name}: is for noise alone. Give epsilon and delta too, or leave it out.")
        return OPEN
    masked = told.pop("masked", None)
    masked = spec_of(method).one_sum if masked is None else bool(masked)
    if not masked and "collusion" in told:
        raise ParameterError("collusion: without masks each silo adds all of the noise, and no share. Leave it out.")
    for name in {"centres", "scales"} & told.keys():
        told[name] = _numbers(name, told[name])
    return Privacy(sums="masked" if masked else "open", **told)


def _is(value: Any, default: Any) -> bool:
    return isinstance(value, type(default)) and bool(value == default)


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    try:
        return tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        kind = "a number" if not isinstance(values, Sequence) else repr(values)
        raise ParameterError(f"{name}: expected one number per node, got {kind}.") from error
