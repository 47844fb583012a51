"""The policy of a kit: the classes a job may name, the rights of each role, the log, and how fast things are noticed.

NVFlare ships every kit with a generous policy. Ours is written into `local/` in full, and the stock defaults and start
scripts are removed: they would start a client that is not hardened.
"""

import json
from pathlib import Path
from typing import Any

from silograph._util.files import write_bytes
from silograph.federation.coordinator.states import MOST_AT_ONCE
from silograph.federation.folders import FederationFolder, Kit
from silograph.federation.nvflare.jobs import CONTROLLER, EXECUTOR

SITE_CLASSES, SERVER_CLASSES = [EXECUTOR], [CONTROLLER]

_ROLES = ("project_admin", "org_admin", "lead", "member")
_RIGHTS = (
    "submit_job", "clone_job", "manage_job", "download_job", "view", "operate", "shell_commands", "byoc",
    "server-predeployed-flwr",
)  # fmt: skip
# A lead submits, watches and aborts its own jobs. Nobody may do more: no code in jobs, no shell, no restart. A site is
# asked for the first and the last of these.
_SERVER_RIGHTS = {"submit_job": "any", "manage_job": "n:submitter", "view": "any"}
_SITE_RIGHTS = {"submit_job": "any", "manage_job": "n:submitter"}


def harden_site(kit: Kit) -> None:
    """Write the site's policy into its kit."""
    _write_policy(kit, _site_resources(), _SITE_RIGHTS)


def harden_server(kit: Kit, federation: FederationFolder) -> None:
    """Write the server's policy into its kit, with its jobs kept in the federation's folder."""
    _write_policy(kit, _server_resources(federation), _SERVER_RIGHTS)


def tidy_lead(kit: Kit) -> None:
    """Keep of the lead's, or the conductor's, kit all that a session from Python needs."""
    for name in ("fl_admin.sh", "system_info.ipynb", "readme.txt"):
        (kit.startup / name).unlink(missing_ok=True)
    kit.transfer.mkdir(exist_ok=True)


def place_storage(federation: FederationFolder) -> None:
    """Point the server at its storage; repairs a federation's folder that was moved."""
    path = federation.server.resources
    resources = json.loads(path.read_text(encoding="utf-8"))
    before = json.dumps(resources)
    resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(federation.snapshots)
    for component in resources["components"]:
        if component["id"] == "job_manager":
            component["args"]["uri_root"] = str(federation.jobs)
    if json.dumps(resources) != before:
        _write(path, resources)


def _site_resources() -> dict[str, Any]:
    gpu = "nvflare.app_common.resource_managers.gpu_resource_manager.GPUResourceManager"
    consumer = "nvflare.app_common.resource_consumers.gpu_resource_consumer.GPUResourceConsumer"
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": SITE_CLASSES,
        "allow_log_streaming": False,
        "client": {"retry_timeout": 30, "client_register_interval": 0.5},
        "components": [
            {"id": "resource_manager", "path": gpu, "args": {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0}},
            {"id": "resource_consumer", "path": consumer, "args": {}},
            {"id": "process_launcher", "path": "silograph.federation.nvflare.hardened.SiteLauncher", "args": {}},
        ],
    }


def _server_resources(federation: FederationFolder) -> dict[str, Any]:
    files = "nvflare.app_common.storages.filesystem_storage.FilesystemStorage"
    persistor = "nvflare.app_common.state_persistors.storage_state_persistor.StorageStatePersistor"
    kept = {"path": files, "args": {"root_dir": str(federation.snapshots), "uri_root": "/"}}
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": SERVER_CLASSES,
        "servers": [
            {"admin_storage": "transfer", "max_num_clients": 1000, "heart_beat_timeout": 30, "admin_timeout": 10.0}
        ],
        "snapshot_persistor": {"path": persistor, "args": {"uri_root": "/", "storage": kept}},
        "components": [
            {
                "id": "job_scheduler",
                "path": "nvflare.app_common.job_schedulers.job_scheduler.DefaultJobScheduler",
                # A job waits for a site that is away, rather than failing after a number of tries. Whole seconds:
                # the scheduler doubles the first interval with each try, which as a float would overflow
                "args": {
                    "max_jobs": MOST_AT_ONCE + 1,  # one more, for a survey
                    "max_schedule_count": 100_000,
                    "min_schedule_interval": 1,
                    "max_schedule_interval": 10,
                },
            },
            {
                "id": "job_manager",
                "path": "nvflare.apis.impl.job_def_manager.SimpleJobDefManager",
                "args": {"uri_root": str(federation.jobs), "job_store_id": "job_store"},
            },
            {"id": "job_store", "path": files},
            {"id": "process_launcher", "path": "silograph.federation.nvflare.hardened.ServerLauncher", "args": {}},
        ],
    }


def _authorization(lead: dict[str, str]) -> dict[str, Any]:
    permissions = {role: dict.fromkeys(_RIGHTS, "none") for role in _ROLES}
    permissions["lead"] |= lead
    return {"format_version": "1.0", "permissions": permissions}


def _log_config() -> dict[str, Any]:
    # To the standard output only: the host writes it to one log of limited size. NVFlare's own five files beside each
    # process may grow to a gigabyte, and some of them are what log streaming would send to the server.
    text = "%(asctime)s - %(name)s - %(levelname)s - %(fl_ctx)s - %(message)s"
    console = {"class": "logging.StreamHandler", "level": "DEBUG", "formatter": "plain", "stream": "ext://sys.stdout"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"()": "nvflare.fuel.utils.log_utils.BaseFormatter", "fmt": text}},
        "handlers": {"console": console},
        "loggers": {"root": {"level": "INFO", "handlers": ["console"]}},
    }


def _write_policy(kit: Kit, resources: dict[str, Any], rights: dict[str, str]) -> None:
    for pattern in ("local/*.default", "local/*.sample", "startup/*.sh", "readme.txt"):
        for path in kit.path.glob(pattern):
            path.unlink()
    kit.transfer.mkdir(exist_ok=True)
    config = json.loads(kit.config.read_text(encoding="utf-8"))
    _write(kit.config, {**config, "require_signed_jobs": True})
    _write(kit.resources, resources)
    _write(kit.authorization, _authorization(rights))
    _write(kit.log_config, _log_config())


def _write(path: Path, content: dict[str, Any]) -> None:
    write_bytes(path, json.dumps(content, indent=2).encode())
