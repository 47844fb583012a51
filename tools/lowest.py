"""Print pip constraints that pin each dependency of a pyproject.toml to the lowest version it allows.

Only what users install is pinned: the tools of developers are taken as they come.
"""

import re
import sys
import tomllib
from pathlib import Path

DEVELOPERS = {"demo", "test", "lint", "docs", "bench"}


def lowest_versions(project: dict) -> dict[str, str]:
    """The lower bound of each dependency and of each dependency of an extra for users."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for name in extras.keys() - DEVELOPERS for line in extras[name])]
    found = (re.fullmatch(r"([\w.-]+)>=([\w.]+)", line) for line in wanted)
    return {match[1]: match[2] for match in found if match}


if __name__ == "__main__":
    for name, version in sorted(lowest_versions(tomllib.loads(Path(sys.argv[1]).read_text())["project"]).items()):
        print(f"{name}=={version}")
