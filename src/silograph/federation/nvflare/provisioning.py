"""NVFlare's own commands for certificates and kits, run quietly in one process of their own.

A process of their own, because they print, call `sys.exit`, and write audit files below the user's home folder. One for
all commands of a step, because loading NVFlare takes a second and a command a tenth of it.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from silograph.errors import MissingExtraError, ProtocolError, SilographError

ORG = "silograph"  # NVFlare wants an organisation in every certificate; our rules do not depend on it
_TIMEOUT = 120.0
_MAX_ZIP_BYTES = 1_000_000


def run_nvflare(commands: list[list[str]]) -> list[dict[str, Any]]:
    """Run `nvflare COMMAND…` one after the other and return what each reports; stop at the first that fails."""
    with tempfile.TemporaryDirectory(prefix="silograph-") as home:
        done = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-m", __name__],
            input=json.dumps(commands),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            cwd=home,
            env={**os.environ, "HOME": home, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    try:
        reports: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError as error:
        if "No module named 'nvflare" in done.stderr:
            raise MissingExtraError(
                "Federations need NVFlare. Install it: pip install 'silograph[nvflare]'."
            ) from error
        raise SilographError(f"NVFlare could not make the certificates: {done.stderr.strip()[-500:]}") from error
    for report in reports:
        if report.get("status") != "ok":
            raise SilographError(f"NVFlare could not make the certificates or the kit: {_reason(report)}")
    return [dict(report["data"]) for report in reports]


def participant(folder: Path, project: str, entry: dict[str, Any]) -> Path:
    """Write the definition of one participant, as `nvflare cert request` reads it."""
    path = folder / f"{entry['name']}.yml"
    path.write_text(json.dumps({"name": project, "participants": [{"org": ORG, **entry}]}), encoding="utf-8")
    return path  # JSON is YAML


def package_command(signed_zip: Path, request: Path, fingerprint: str, workspace: Path) -> list[str]:
    """Make a kit of a signed request, checking the root certificate against the fingerprint without asking anybody."""
    options = ["--request-dir", str(request), "--fingerprint", fingerprint, "-w", str(workspace)]
    return ["package", str(signed_zip), *options]


def read_member(path: Path, name: str) -> bytes:
    """One small member of an archive that came from outside; nothing is unpacked to disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(name).file_size > _MAX_ZIP_BYTES:
                raise ProtocolError(f"{path}: {name} is too large.")
            return archive.read(name)
    except (OSError, KeyError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise ProtocolError(f"{path}: cannot be read, or has no {name}. Ask for the file to be sent again.") from error


def _reason(report: dict[str, Any]) -> str:
    return " ".join(str(report[key]) for key in ("message", "detail") if report.get(key))


def _run_one(command: list[str]) -> dict[str, Any]:
    from nvflare.cli import run

    sys.argv = ["nvflare", "--format", "json", *command]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        run("nvflare")
    for line in reversed(output.getvalue().splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    return {"status": "error", "message": f"'nvflare {command[0]}' reported nothing."}


def _main() -> None:
    reports: list[dict[str, Any]] = []
    for command in json.load(sys.stdin):
        reports.append(_run_one(command))
        if reports[-1].get("status") != "ok":
            break
    json.dump(reports, sys.stdout)


if __name__ == "__main__":
    _main()
