"""What the measurements were made on: enough to judge them, nothing that names a person or a place."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "pygsp2", "cvxpy", "clarabel", "scs", "gglasso", "nilearn")


def facts() -> dict[str, object]:
    """The processor, its load, and the versions in use."""
    return {
        "cpu": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.system(),
        "python": platform.python_version(),
        "threads": 1,
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
