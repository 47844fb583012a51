"""Commands whose options are the fields of a dataclass: each is declared once, and all are carried as one."""

from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def takes(options: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Make a function of the options a command that typer reads."""
    hints = get_type_hints(options, include_extras=True)
    declared = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(options)  # type: ignore[arg-type]
    ]

    def wrap(function: Callable[[T], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            function(options(**given))

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__, command.__signature__ = hints, Signature(declared)  # type: ignore[attr-defined]
        return command

    return wrap


def given(options: Any) -> dict[str, Any]:
    """The options that differ from their defaults: those that a user gave."""
    values = {field.name: (getattr(options, field.name), field.default) for field in fields(options)}
    return {name: value for name, (value, default) in values.items() if value not in (default, [])}
