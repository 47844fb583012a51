"""How a compiled loop is made: one decorator, so that every kernel has the same manners."""

# numba has no types of its own
# mypy: disable-error-code="no-untyped-call"
import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import Compiler
from numba.core.event import Event, Listener, install_listener

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).parents[1]
ROOM = 2**14  # places on Python's stack


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
    compiled = numba.njit(no_cfunc_wrapper=True, pipeline_class=_Compiler, **options)(function)
    with suppress(RuntimeError):  # numba's word for "no place to cache"
        compiled._cache = _Cache(function)
    return cast(Callable[P, R], compiled)


@contextmanager
def telling_of_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` when the first kernel is compiled in here; never where all are on disk already."""
    with install_listener("numba:compile", _First(tell)):
        yield


class _First(Listener):  # type: ignore[misc]
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell: Callable[[], None] | None = tell

    def on_start(self, event: Event) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    def on_end(self, event: Event) -> None:
        pass


class _Cache(FunctionCache):  # type: ignore[misc]
    """Machine code is fresh as long as no file with kernels has changed; numba asks the function's own file alone."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, kernel_sources())


@cache
def kernel_sources() -> str:
    """A hash of all files with kernels, to which belongs all that a kernel reads of silograph (a test holds that)."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"kernel\ndef " in text or b"@overload(" in text:
            found.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + text)
    return found.hexdigest()


class _Compiler(Compiler):  # type: ignore[misc]
    """numba's compiler, without what makes it slow for no use.

    Python's stack grows by pieces of 16 kB. A loop of the compiler that happens to stand at the end of one has a piece
    mapped and unmapped with each call: a fifth of all the time, depending on how deep the caller is. One call that asks
    for more gets a piece with room for all that it calls. And the many objects of a compilation live until its end:
    to search them for garbage takes another twentieth.
    """

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile one function."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            return _with_room(super().compile_extra, func)
        finally:
            if collecting:
                gc.enable()


def _with_room(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return function(*args, **kwargs)


_with_room.__code__ = _with_room.__code__.replace(co_stacksize=ROOM)
