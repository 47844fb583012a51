"""The container file: read as it stands, and its steps run in a bare Debian, as a container tool would run them."""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from silograph.cli.app import app
from testing.consortium import NODES, write_table
from testing.containers import Container, bare_root, of_unit, read_containerfile, stop
from testing.real_federation import free_port
from testing.waiting import eventually

ROOT = Path(__file__).parents[3]
WHEELS = ROOT / "wheels"
IMAGES = read_containerfile(ROOT / "containers" / "Containerfile")
USER = 10001


@pytest.mark.parametrize("name", ["server", "site"])
def test_an_image_runs_commands_that_exist_as_nobody_special(name):
    from typer.testing import CliRunner

    image = IMAGES[name]
    user, _, group = image.user.partition(":")
    assert int(user) > 0 < int(group)
    assert image.entrypoint == ("silograph",)
    assert image.command == ({"server": "federation", "site": "site"}[name], "start")
    assert CliRunner().invoke(app, [*image.command, "--help"]).exit_code == 0
    assert f"silograph {image.command[0]}" in " ".join(image.health)
    written = [image.environment["HOME"], image.environment["NUMBA_CACHE_DIR"], image.folder]
    assert all(place == image.volumes[0] or place.startswith(f"{image.volumes[0]}/") for place in written)


def test_nothing_is_installed_but_from_the_wheels():
    (step,) = IMAGES["silograph"].steps
    assert "--no-index --find-links /wheels" in step
    assert "apt" not in step


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Iterator[Path]:
    """A bare root with the image's steps done."""
    folder = tmp_path_factory.mktemp("container")
    if not (WHEELS / "SHA256SUMS").is_file():
        pytest.skip("no wheels: make wheels")
    root = bare_root(folder / "root")
    Container(root, IMAGES["site"]).build(WHEELS)
    yield root
    shutil.rmtree(folder)  # half a gigabyte


@pytest.fixture
def work(tmp_path) -> Path:
    """A folder that belongs to the image's user, in one that everybody may pass."""
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.chown(folder, USER, USER)
    return folder


@pytest.fixture
def site(installed, work, tmp_path) -> Container:
    """The site's image, with a folder of its own and one of data that it may only read."""
    data = tmp_path / "data"
    data.mkdir()
    write_table(data / "oslo.csv", 0, nodes=NODES)
    (data / "nodes.txt").write_text("\n".join(NODES) + "\n")
    return Container(installed, IMAGES["site"], mounts={"/work": work}, readable={"/data": data})


@pytest.mark.container
def test_it_runs_without_rights_on_a_root_that_nobody_can_write(site, work):
    assert site.run("site", "--help").returncode == 0
    told = site.execute("sh", "-c", "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status").stdout.split()
    assert told == [str(USER), "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    for place in ("/", "/opt/silograph", "/etc", "/data", "/var/tmp"):
        assert "Read-only file system" in site.execute("touch", f"{place}/x").stderr, place
    assert site.execute("touch", "/work/x", "/tmp/x").returncode == 0
    assert (work / "x").stat().st_uid == USER


@pytest.mark.container
def test_a_site_asks_joins_starts_connects_and_stops_in_it_also_as_a_service(site, installed, work, tmp_path):
    """Server and site each in a container, on this machine's network, as with `podman run --network=host`."""
    home = tmp_path / "server"
    home.mkdir()
    shutil.chown(home, USER, USER)
    server = Container(installed, IMAGES["server"], mounts={"/work": home}, readable={"/data": site.readable["/data"]})
    port = str(free_port())
    new = ["federation", "new", "brains", "--server", "localhost", "--port", port, "--sites", "oslo", "lima"]
    said(server, *new, "--nodes", "/data/nodes.txt", "--folder", "fed")
    at_home = replace(server, mounts={"/work": home / "fed"})
    bring(home / "fed" / "brains.invite", work)
    said(site, "site", "request", "brains.invite", "--site", "oslo", "--folder", ".")
    bring(work / "oslo.request.zip", home / "fed")
    said(at_home, "federation", "approve", "oslo.request.zip")
    bring(home / "fed" / "oslo.signed.zip", work)
    said(site, "site", "join", "oslo.signed.zip", "--data", "/data/oslo.csv")
    unit = of_unit(said(site, "site", "start", "--systemd", "--folder", "/work"), site)
    hosts = [at_home.start(), site.start()]
    try:
        eventually(lambda: is_connected(at_home), every=2.0)
        assert at_home.execute(*at_home.image.health).returncode == 0
        if "doctor" in said(site, "site", "--help"):
            done = site.execute(*site.image.health)
            assert done.returncode == 0, done.stdout + done.stderr
        assert "Site oslo has ended." in stop(hosts.pop())
        done = unit.execute(*unit.image.health)  # what the unit does before it starts
        assert done.returncode == 0, done.stdout + done.stderr
        began = time.time()
        hosts.append(unit.start())
        eventually(lambda: is_connected(at_home, since=began), every=2.0)
    finally:
        ends = [stop(host) for host in reversed(hosts)]
    assert "Site oslo has ended." in ends[0]
    assert "The server has ended." in ends[1]
    assert at_home.execute(*at_home.image.health).returncode != 0
    assert {path.stat().st_uid for path in work.rglob("*")} == {USER}


def bring(file: Path, folder: Path) -> None:
    """As by mail, to somebody who may read it."""
    shutil.chown(shutil.copy(file, folder), USER, USER)


def said(container: Container, *command: str) -> str:
    done = container.run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def is_connected(server: Container, since: float = 0.0) -> bool:
    told = server.run("federation", "status", "--quick", "--json")
    if told.returncode != 0:
        return False
    (oslo,) = (one for one in json.loads(told.stdout)["sites"] if one["site"] == "oslo")
    return oslo["connected"] and oslo["last_seen"] > since
