"""How a compiled loop is made: one decorator, so that every kernel has the same manners."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on first use, without the GIL, and keep the machine code on disk.

    Sums may be reassociated, so that loops become vector instructions; NaN and infinity keep their meaning. Where no
    folder can be written (a read-only installation without a home), the code is compiled anew in each process.

    A kernel is built into those that call it. Otherwise the linker lets all callers in a process share one copy, the
    first one loaded, and as copies round differently, last digits would depend on what a process did before.
    """
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def strict_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that rounds just as it is written, for loops that compute the error of a sum."""
    return _compiled(function, fastmath=False)


def _compiled(function: Callable[P, R], *, fastmath: set[str] | bool) -> Callable[P, R]:
    options = {"nogil": True, "forceinline": True, "fastmath": fastmath, "error_model": "numpy"}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba's word for "no place to cache"
        compiled = numba.njit(**options)(function)
    return cast(Callable[P, R], compiled)
