"""Optional dependencies: imported where they are needed, with a message that says how to get them."""

from importlib import import_module
from typing import Any

from silograph.errors import MissingExtraError


def required(module: str, *, extra: str, purpose: str) -> Any:
    """The module, or an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module.partition('.')[0]} is needed {purpose} and is not installed. "
            f"Install it with: pip install 'silograph[{extra}]'"
        ) from error
