"""How a command asks the server: with patience, and believing of results only what arrives whole."""

import hashlib

import pytest

from silograph.cli.federation import asking
from silograph.cli.federation.asking import Patient
from silograph.errors import ProtocolError
from silograph.federation.coordinator.supervisor import ServerAwayError


class Server:
    """Has one file, which it tells in pieces; is away for the first `away` questions."""

    def __init__(self, data=b"", *, away=0, piece=7):
        self.data, self.away, self.piece = data, away, piece
        self.asked = 0

    def ask(self, what, **about):
        self.asked += 1
        if self.asked <= self.away:
            raise ServerAwayError("The server does not answer: nothing listens on that port.")
        if what != "fetch":
            return {}
        start = about["start"]
        return {"data": asking.base64.b64encode(self.data[start : start + self.piece]).decode()}


def listed(data, name="consensus/edges.csv", size=None):
    return {"name": name, "size": len(data) if size is None else size, "sha256": hashlib.sha256(data).hexdigest()}


@pytest.fixture
def said(monkeypatch):
    monkeypatch.setattr(asking, "RETRY_SECONDS", 0.0)
    return []


def test_a_server_that_is_away_is_told_of_once_and_when_it_is_back(said):
    Patient(Server(away=3), said.append).ask("status")
    assert said == [
        "The server does not answer: nothing listens on that port. Waiting for it; what was begun there goes on.",
        "The server answers.",
    ]


def test_a_file_arrives_in_pieces_whatever_happens_between(said, tmp_path):
    data = bytes(range(256)) * 3
    Patient(Server(data, away=2), said.append).fetch("run", listed(data), tmp_path)
    assert (tmp_path / "consensus" / "edges.csv").read_bytes() == data


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"size": 10_000}, {"size": 3}])
def test_a_file_that_is_not_what_was_listed_is_not_believed(said, tmp_path, change):
    with pytest.raises(ProtocolError, match="did not arrive as the server has it"):
        Patient(Server(b"graph" * 9), said.append).fetch("run", listed(b"graph" * 9) | change, tmp_path)


@pytest.mark.parametrize("name", ["../run.json", "/tmp/silograph-stray", "a/../../b"])
def test_a_server_cannot_write_elsewhere(said, tmp_path, name):
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(ProtocolError, match="outside"):
        Patient(Server(b"x"), said.append).fetch("run", listed(b"x", name), folder)
    assert list(tmp_path.iterdir()) == [folder]
