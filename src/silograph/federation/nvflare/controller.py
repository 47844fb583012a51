"""The coordinator's half of a job on NVFlare: it conducts one run, or asks the sites how they are."""

from pathlib import Path
from typing import Any

from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from silograph.federation.coordinator.attempt import run_attempt
from silograph.federation.coordinator.run import open_run
from silograph.federation.coordinator.survey import survey_sites
from silograph.federation.folders import FederationFolder, owner_of_kit
from silograph.federation.identity import read_signer, read_trust
from silograph.federation.members import KeysOnFile
from silograph.federation.names import RUN_NAME
from silograph.federation.nvflare.transport import AuxTransport


class StudyController(Controller):  # type: ignore[misc]
    """Conducts runs by name, one after the other; without any, asks `sites` for their status."""

    def __init__(self, runs: list[str], sites: list[str] | None = None) -> None:
        super().__init__()
        if not all(isinstance(name, str) and RUN_NAME.fullmatch(name) for name in runs):  # each becomes a path
            raise ValueError(f"runs: expected names of 16 hexadecimal digits each, got {str(runs)[:200]}")
        self._runs, self._sites = list(runs), list(sites or [])
        self._federation = FederationFolder(Path())

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Find the federation's folder."""
        config = Path(fl_ctx.get_workspace().get_site_config_dir())
        self._federation = FederationFolder(owner_of_kit(config, "server"))

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Conduct the runs. How each ended is written into its folder; a job itself never fails for it."""
        kit = self._federation.server
        identity: dict[str, Any] = {
            "signer": read_signer(kit.certificate, kit.key),
            "trust": read_trust(kit.root_certificate, KeysOnFile(self._federation)),
        }
        attempt = fl_ctx.get_job_id()
        transport = AuxTransport(fl_ctx.get_engine(), attempt)
        for name in self._runs:
            run = open_run(self._federation.run(name))
            outcome = run_attempt(
                run, transport, attempt=attempt, stopped=lambda: bool(abort_signal.triggered), **identity
            )
            self.log_info(fl_ctx, f"run {name}: {': '.join(filter(None, (outcome.ended, outcome.message)))}")
        if not self._runs:
            survey_sites(self._federation, transport, self._sites, attempt=attempt, **identity)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing is left open."""

    def process_result_of_unknown_task(
        self, client: Any, task_name: str, client_task_id: str, result: Shareable, fl_ctx: FLContext
    ) -> None:
        """No task is ever given, so there is no result to take."""
