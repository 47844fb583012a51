"""The invitation comes from outside: what is not one is refused with a reason."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from silograph.errors import ProtocolError
from silograph.federation.invitation import LARGEST_INVITATION, Invitation, read_invitation, write_invitation

INVITATION = Invitation(
    name="brains", server="coord.example.org", port=8002, sites=("north", "south"), fingerprint="ab" * 32
)


def altered(path: Path, **changes: object) -> Path:
    write_invitation(path, INVITATION)
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))
    return path


@pytest.mark.parametrize("nodes", [None, ("Thalamus_L", "Thalamus_R", "Noyau caudé")])
def test_what_is_written_is_read_again(tmp_path: Path, nodes: tuple[str, ...] | None) -> None:
    invitation = replace(INVITATION, nodes=nodes)
    assert read_invitation(write_invitation(tmp_path / "brains.invite", invitation)) == invitation


def test_people_compare_the_fingerprint_in_pairs() -> None:
    assert INVITATION.shown_fingerprint() == ":".join(["AB"] * 32)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "recipe"}, "not a silograph invitation"),
        ({"version": 2}, "version 2"),
        ({"name": "../brains"}, "the federation's name"),
        ({"name": ...}, "name: is missing"),
        ({"sites": ["north", "../../etc"]}, "site name: expected"),
        ({"sites": ["north", "North"]}, "each name once"),
        ({"sites": ["north", "Server"]}, "cannot be called 'server'"),
        ({"sites": ["north", "North_2"]}, "site name: expected"),
        ({"sites": ["north", "coord"], "server": "coord"}, "cannot have the server's name"),
        ({"sites": "north"}, "sites: expected a list"),
        ({"sites": []}, "sites"),
        ({"port": 0}, "port"),
        ({"port": "8002"}, "port: expected a whole number"),
        ({"port": True}, "port: expected a whole number"),
        ({"server": "coord.example.org:8002"}, "host name"),
        ({"server": "127.0.0.1"}, "IP address"),
        ({"fingerprint": "ab"}, "64 hexadecimal"),
        ({"nodes": ["a", "a"]}, "each name once"),
        ({"nodes": ["a", "b\n"]}, "without tabs, line breaks"),
        ({"nodes": ["a", 3]}, "entry 2: expected text, got 3"),
        ({"command": "rm"}, "'command': no such key"),
    ],
)
def test_a_foreign_or_altered_invitation_is_refused(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    path = altered(tmp_path / "brains.invite", **changes)
    with pytest.raises(ProtocolError, match=reason) as refused:
        read_invitation(path)
    assert "brains.invite" in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\xff\xfe", b"[]", b'"invitation"', b"[" * 100_000])
def test_what_is_no_json_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "brains.invite"
    path.write_bytes(content)
    with pytest.raises(ProtocolError, match=r"damaged|not a silograph invitation"):
        read_invitation(path)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "brains.invite"
    path.write_bytes(b" " * (LARGEST_INVITATION + 1))
    with pytest.raises(ProtocolError, match="larger than"):
        read_invitation(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match=r"none\.invite: cannot be read"):
        read_invitation(tmp_path / "none.invite")
