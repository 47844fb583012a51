"""Where a process of a job finds the folder it belongs to.

A kit lies in its owner's folder (`FEDERATION/server`, `SITE/kit`). Only the simulator, in which all sites share one
workspace, needs to be told: `local/silograph.json` there gives a folder for each name.
"""

from __future__ import annotations

import json
from pathlib import Path

POINTER = "silograph.json"


def own_folder(config: Path, name: str) -> Path:
    """The folder of the site or federation whose kit has this folder of local configuration."""
    pointer = config / POINTER
    if pointer.exists():
        return Path(json.loads(pointer.read_text(encoding="utf-8"))[name])
    return config.parent.parent
