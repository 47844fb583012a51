"""What can be said of hosting without a server that runs."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from silograph.errors import ParameterError, SilosError
from silograph.federation.folders import Kit
from silograph.federation.nvflare import hosting
from silograph.federation.nvflare.hosting import host_server, host_site
from silograph.federation.nvflare.systemd import systemd_unit

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_the_hosts_give_no_python_path_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from silograph.federation.nvflare.hosting import _environment

    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert not {"PYTHONPATH", "SECRET_TOKEN"} & set(_environment(None))
    assert _environment({"PYTHONPATH": "chosen"})["PYTHONPATH"] == "chosen"


def test_numeric_libraries_are_told_what_they_are_told_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which processor OpenBLAS takes for granted decides last bits, and graphs are promised to the last bit."""
    from silograph.federation.nvflare.hosting import _environment

    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert _environment(None)["OPENBLAS_CORETYPE"] == "Haswell"


def test_what_has_no_kit_is_not_hosted(tmp_path: Path) -> None:
    with pytest.raises(SilosError, match="silograph site join"):
        host_site(tmp_path)
    with pytest.raises(SilosError, match="silograph federation new"):
        host_server(tmp_path)


def hosted(folder: Path, *command: str, **more: Any) -> hosting.Hosted:
    """A process of one's own choice, hosted as the server's would be."""
    (folder / "kit").mkdir(exist_ok=True)
    return hosting.Hosted(
        "The server", folder, Kit(folder / "kit", "server"), folder / "server.log", folder / "nvflare.log",
        command or (sys.executable, "-c", "import time; time.sleep(60)"), {}, hosting.LogWatch, **more,
    )  # fmt: skip


def test_a_process_that_reads_the_table_ends_with_its_sites_host(tmp_path: Path) -> None:
    """It was begun by a job that is over, and is nobody's child."""
    one = hosted(tmp_path)
    module, kit = "silograph.federation.site.reading", str(one.kit.path)
    with subprocess.Popen([*one.command, "-m", module, kit], start_new_session=True) as reader:
        hosting._end_leftovers(one)
        assert reader.poll() is not None


def test_a_unit_restarts_always_and_may_write_its_folder_only(tmp_path: Path) -> None:
    unit = systemd_unit("site", tmp_path)
    for line in ("Restart=always", "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes"):
        assert line in unit.splitlines()
    assert f'ReadWritePaths="{tmp_path}"' in unit
    assert f'-m silograph site start --folder "{tmp_path}"' in unit
    assert "federation start" in systemd_unit("server", tmp_path)
    with pytest.raises(ParameterError):
        systemd_unit("both", tmp_path)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze: apt-get install systemd")
@pytest.mark.parametrize("kind", ["server", "site"])
def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "of a hospital, 100% ours"
    folder.mkdir()
    unit = tmp_path / "silograph-test.service"
    unit.write_text(systemd_unit(kind, folder))
    verify = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    assert "Unknown key" in subprocess.run(verify, capture_output=True, text=True, check=False).stderr
