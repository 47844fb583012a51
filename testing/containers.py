"""A container without a container tool: the steps of a Containerfile in a bare Debian root, and its command run in it.

The root is made by debootstrap from the mirror that apt is configured with. Steps run by chroot in namespaces of their
own, without a network; the image's command runs as its user, without capabilities, on a root that is mounted read-only,
as `podman run --read-only` would. It takes root, Linux, and debootstrap; where one is missing, the test is skipped and
says which.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

TOOLS = ("debootstrap", "unshare", "setpriv", "chroot", "apt-get")
PACKAGES = "python3,python3-venv"
DEVICES = ("null", "zero", "full", "random", "urandom")
KNOWN = {"ARG", "FROM", "RUN", "ENV", "USER", "WORKDIR", "VOLUME", "ENTRYPOINT", "CMD", "HEALTHCHECK"}


@dataclass(frozen=True)
class Image:
    """What a Containerfile says of one of its stages."""

    steps: tuple[str, ...] = ()  # commands, each with the build's context at /wheels
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    volumes: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    health: tuple[str, ...] = ()


def read_containerfile(path: Path) -> dict[str, Image]:
    """The stages by their names; an instruction that is not known here fails."""
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    stages: dict[str, Image] = {}
    name = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        assert word in KNOWN, line
        if word == "ARG":
            continue
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages[name] = stages.get(base, Image())
        else:
            stages[name] = replace(stages[name], **_change(stages[name], word, rest))
    return stages


def _change(image: Image, word: str, rest: str) -> dict[str, object]:
    if word == "RUN":
        mount, _, command = rest.partition(" ")
        assert mount == "--mount=type=bind,target=/wheels", rest
        assert (image.user, image.folder) == ("0:0", "/"), "steps run as root, in /"
        return {"steps": (*image.steps, command)}
    if word == "ENV":
        return {"environment": {**image.environment, **dict(one.split("=", 1) for one in shlex.split(rest))}}
    if word == "HEALTHCHECK":
        return {"health": tuple(json.loads(rest.partition("CMD ")[2]))}
    return {
        "USER": {"user": rest},
        "WORKDIR": {"folder": rest},
        "VOLUME": {"volumes": (*image.volumes, rest)},
        "ENTRYPOINT": {"entrypoint": tuple(json.loads(rest)) if word == "ENTRYPOINT" else ()},
        "CMD": {"command": tuple(json.loads(rest)) if word == "CMD" else ()},
    }[word]


def bare_root(folder: Path) -> Path:
    """A bare Debian of this machine's release, with Python, or a skip that says what is missing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a bare root is made by root, on Linux")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    os_release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = os_release.get("VERSION_CODENAME", "").strip('"')
    mirror = _mirror(suite)
    if mirror is None:
        pytest.skip(f"apt knows no mirror of {suite or 'this release'}")
    # In a mount namespace: what debootstrap mounts is gone with it, and is not deleted with the folder
    make = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(folder), mirror]
    subprocess.run(["unshare", "--mount", *make], check=True, env={**os.environ, **_proxy()}, capture_output=True)
    python = subprocess.run(
        ["chroot", folder, "python3", "-c", "import sys; print(*sys.version_info[:2])"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    if python.stdout.split() != [str(part) for part in sys.version_info[:2]]:
        pytest.skip(f"wheels are for Python {sys.version_info[:2]}, {suite} has {python.stdout.split()}")
    (folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
    return folder


def _mirror(suite: str) -> str | None:
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = (line.split() for line in told.stdout.splitlines())
    return next((uri for uri, release in found if suite and release == suite and uri.startswith("http")), None)


def _proxy() -> dict[str, str]:
    told = subprocess.run(
        ["apt-config", "shell", "http_proxy", "Acquire::http::Proxy"], capture_output=True, text=True, check=False
    )
    return dict(one.split("=", 1) for one in shlex.split(told.stdout))


@dataclass(frozen=True)
class Container:
    """An image on its root, with the folders that are mounted into it."""

    root: Path
    image: Image
    mounts: Mapping[str, Path] = field(default_factory=dict)  # place inside → folder of this machine
    readable: Mapping[str, Path] = field(default_factory=dict)  # the same, only to be read

    def build(self, context: Path) -> None:
        """Run the steps as root, without a network."""
        for step in self.image.steps:
            mounted = replace(self, mounts={}, readable={"/wheels": context}, image=Image())
            words = mounted.argv(["/bin/sh", "-ec", step], isolated=True, read_only=False)
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{step}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    def run(self, *command: str, timeout: float = 300.0) -> subprocess.CompletedProcess[str]:
        """The entry point with other words than the image's, until it ends."""
        words = self.argv([*self.image.entrypoint, *command])
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=timeout)

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Any command, as the user of the image, on the read-only root."""
        return subprocess.run(self.argv(command), capture_output=True, text=True, check=False, timeout=300)

    def start(self) -> subprocess.Popen[str]:
        """The image's own command; ended by `stop`."""
        words = self.argv([*self.image.entrypoint, *self.image.command])
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def argv(self, command: Sequence[str], *, isolated: bool = False, read_only: bool = True) -> list[str]:
        """The words that run a command inside."""
        root, image = str(self.root), self.image
        mounts = [*((place, folder, "rw") for place, folder in self.mounts.items())]
        mounts += [(place, folder, "ro") for place, folder in self.readable.items()]
        for place, *_ in mounts:
            (self.root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for name in DEVICES:
            (self.root / "dev" / name).touch()
        lines = [f"mount --bind {_q(root)} {_q(root)}"]
        for place, folder, how in mounts:
            inside = _q(f"{root}{place}")
            lines += [f"mount --bind {_q(folder)} {inside}", f"mount -o remount,bind,nosuid,nodev,{how} {inside}"]
        lines += [f"mount --bind /dev/{name} {_q(f'{root}/dev/{name}')}" for name in DEVICES]
        lines += [f"mount -t proc proc {_q(f'{root}/proc')}", f"mount -t tmpfs -o mode=1777 tmpfs {_q(f'{root}/tmp')}"]
        lines += [f"mount -o remount,bind,ro {_q(root)}"] * read_only
        user, _, group = image.user.partition(":")
        drop = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
        drop += ["--inh-caps=-all", "--bounding-set=-all"] if user != "0" else []
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **image.environment}
        inside = ["env", "--ignore-environment", f"--chdir={image.folder}", *(f"{k}={v}" for k, v in variables.items())]
        lines += [f"exec chroot {_q(root)} {shlex.join([*drop, *inside, *command])}"]
        alone = ["--net"] if isolated else []
        return ["unshare", "--mount", "--ipc", "--uts", "--pid", "--fork", *alone, "sh", "-ec", "\n".join(lines)]


def of_unit(unit: str, container: Container) -> Container:
    """What systemd would start by a unit, in the same root, with what it restricts as far as namespaces can.

    The entry point is the unit's command. Only the folders that it names may be written; /tmp is its own.
    """
    told = dict(line.partition("=")[::2] for line in unit.splitlines() if "=" in line and not line.startswith("#"))
    assert (told["ProtectSystem"], told["PrivateTmp"], told["PrivateDevices"]) == ("strict", "yes", "yes")
    assert (told["NoNewPrivileges"], told["CapabilityBoundingSet"]) == ("yes", "")
    assert set(shlex.split(told["ReadWritePaths"])) == set(container.mounts)
    variables = dict(one.split("=", 1) for one in shlex.split(told["Environment"]))
    image = Image(
        environment={"HOME": "/nonexistent", "LANG": "C.UTF-8", **variables},  # as of a user without a home
        user=container.image.user,
        folder=told["WorkingDirectory"],
        command=tuple(shlex.split(told["ExecStart"])),
        health=tuple(shlex.split(told["ExecStartPre"])),
    )
    return replace(container, image=image)


def stop(process: subprocess.Popen[str], *, patience: float = 60.0) -> str:
    """End what `Container.start` began as `podman stop` does; all that it said. What does not end is killed."""
    first = psutil.Process(process.pid).children()[0]  # the first process inside, whose end is that of all others
    first.terminate()
    try:
        said, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        first.kill()
        process.communicate()
        raise
    return said


def _q(path: Path | str) -> str:
    return shlex.quote(str(path))
