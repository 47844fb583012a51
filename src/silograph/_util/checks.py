"""Checks of parameters that several packages take, and lists of names, in one set of words."""

from collections.abc import Sequence

import numpy as np

from silograph.errors import ParameterError

MOST_NAMED = 8


def check_positive(name: str, value: object) -> None:
    """Raise unless it is a finite number above 0."""
    if not (is_number(value) and 0 < value < np.inf):  # type: ignore[operator]
        raise ParameterError(f"{name}: expected a finite number > 0, got {_plain(value)!r}.")


def check_not_negative(name: str, value: object) -> None:
    """Raise unless it is a finite number, 0 or above."""
    if not (is_number(value) and 0 <= value < np.inf):  # type: ignore[operator]
        raise ParameterError(f"{name}: expected a finite number ≥ 0, got {_plain(value)!r}.")


def check_whole(name: str, value: object, *, least: int) -> None:
    """Raise unless it is a whole number, `least` or above."""
    if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least):
        raise ParameterError(f"{name}: expected a whole number ≥ {least}, got {_plain(value)!r}.")


def check_momentum(value: object) -> None:
    """Raise unless it is a number in [0, 1)."""
    if not (is_number(value) and 0 <= value < 1):  # type: ignore[operator]
        raise ParameterError(f"momentum: expected a number in [0, 1), got {_plain(value)!r}.")


def check_one_way(ours: dict[str, object], model: dict[str, object]) -> None:
    """Raise if parameters without units and the model's own are both given, or only one of the model's two."""
    free = [name for name, value in ours.items() if value is not None]
    own = [name for name, value in model.items() if value is not None]
    if free and own:
        raise ParameterError(
            f"{' and '.join(free)} and {' and '.join(own)} contradict each other: "
            f"give {' and '.join(ours)}, or {' and '.join(model)}."
        )
    if len(own) == 1:
        raise ParameterError(f"{own[0]} was given alone: give both {' and '.join(model)}, or {' and '.join(ours)}.")


def is_number(value: object) -> bool:
    """Whether it is a real number; True and False are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _plain(value: object) -> object:
    """NumPy's numbers as Python's, which print as a user wrote them."""
    return value.item() if isinstance(value, np.generic) else value


def list_names(names: Sequence[object], *, most: int = MOST_NAMED) -> str:
    """Names in quotes, a long list cut short: `'a', 'b' and 3 more`."""
    first = ", ".join(map(repr, names[:most]))
    return first if len(names) <= most else f"{first} and {len(names) - most} more"
