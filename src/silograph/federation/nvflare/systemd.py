"""The text of a systemd unit that keeps a server or a site hosted, also over a restart of the machine."""

import sys
from pathlib import Path

from silograph.errors import ParameterError
from silograph.federation.folders import CACHE_FOLDER


def systemd_unit(kind: str, folder: Path) -> str:
    """The text of a systemd unit that hosts the `server` or a `site`, for its administrator to review and install."""
    words = {"server": ("federation", "the server of a silograph federation"), "site": ("site", "a silograph site")}
    if kind not in words:
        raise ParameterError(f"Expected 'server' or 'site', got {kind!r}.")
    command, what = words[kind]
    place = folder.resolve()
    return _UNIT.format(
        what=what,
        folder=_quote(place),
        place=str(place).replace("%", "%%"),  # of this line, systemd takes quotes for a part of the path
        cache=_quote(Path(f"NUMBA_CACHE_DIR={place / CACHE_FOLDER}")),
        python=_quote(Path(sys.executable)),
        command=command,
    )


def _quote(path: Path) -> str:
    if any(character in str(path) for character in '"\\\n'):
        raise ParameterError(f"{path}: systemd needs a path without quotes, backslashes and line ends.")
    return '"' + str(path).replace("%", "%%").replace("$", "$$") + '"'


_UNIT = """\
[Unit]
Description=silograph: {what}
After=network-online.target
Wants=network-online.target

[Service]
# Run it as a user of its own that owns the folder below and may read the data, nothing else
User=silograph
# Compiles what is not in the cache yet, so that the first study need not wait
ExecStartPre={python} -m silograph.engine.warm_up
ExecStart={python} -m silograph {command} start --folder {folder}
WorkingDirectory={place}
Restart=always
RestartSec=5
KillMode=mixed
TimeoutStopSec=30
UMask=0077

NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths={folder}
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
LockPersonality=yes
SystemCallArchitectures=native
CapabilityBoundingSet=
# Not MemoryDenyWriteExecute: the numerical core is compiled when it is first used
Environment={cache}

[Install]
WantedBy=multi-user.target
"""
