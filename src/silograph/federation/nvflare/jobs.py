"""Jobs for NVFlare: three small files of configuration, no code."""

import json
from collections.abc import Sequence
from pathlib import Path

CONTROLLER = "silograph.federation.nvflare.controller.StudyController"
EXECUTOR = "silograph.federation.nvflare.executor.SiteExecutor"


def write_job(folder: Path, *, name: str, runs: Sequence[str], sites: Sequence[str]) -> Path:
    """A job that conducts runs at the server, with a service at each of the sites; without runs, a survey of them."""
    config = folder / "app" / "config"
    config.mkdir(parents=True)
    meta = {
        "name": name,
        "min_clients": len(sites),
        "mandatory_clients": list(sites),
        "resource_spec": {},
        "deploy_map": {"app": ["server", *sites]},
    }
    workflow = {"id": "study", "path": CONTROLLER, "args": {"runs": list(runs), "sites": list(sites)}}
    server = {"format_version": 2, "workflows": [workflow], "components": []}
    executor = {"tasks": ["*"], "executor": {"path": EXECUTOR, "args": {}}}
    client = {"format_version": 2, "executors": [executor], "components": []}
    (folder / "meta.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
    (config / "config_fed_server.json").write_text(json.dumps(server, indent=2), encoding="utf-8")
    (config / "config_fed_client.json").write_text(json.dumps(client, indent=2), encoding="utf-8")
    return folder
