"""One federation that really runs, used by the commands: each byte as `silograph learn` writes it; nothing forged."""

import json

import pytest

pytest.importorskip("nvflare")

from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.identity import Trust, read_signer, read_trust
from silograph.federation.nvflare.executor import open_service
from silograph.federation.site.audit import entries
from testing.real_federation import RealFederation, study_text

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

EXACT = 'method = "exact"\nrounds = 6\nalpha = 0.5\nbeta = 0.25'
RUN_FILES = {"run.json", "history.csv", "history.sqlite", "consensus", "silos", "consensus.json", "consensus.npz"}
OF_ROWS = {"scores.npz", "partial.npz", "consensus.json", "graph.graphml"}  # these have what a coordinator cannot know


def test_the_command_writes_what_learn_writes_on_the_same_tables(fed, tmp_path):
    text = study_text(EXACT)
    record = fed.run(text, tmp_path / "run")
    fed.assert_conforms(tmp_path / "run", text)
    options = ["--method", "exact", "--rounds", "6", "--alpha", "0.5", "--beta", "0.25", "--coupling", "0.5"]
    fed.command("learn", *fed.tables.values(), *options, "--out", tmp_path / "here", code=None)
    assert {path.name for path in (tmp_path / "run").iterdir()} == RUN_FILES
    files = {path.relative_to(tmp_path / "here") for path in (tmp_path / "here").rglob("*") if path.is_file()}
    for file in files:
        if file.name in OF_ROWS | {"run.json"}:
            continue
        here, there = ((tmp_path / folder / file).read_bytes() for folder in ("here", "run"))
        if file.name == "edges.csv":  # here, each edge has its partial correlation, too
            here = b"".join(line.rpartition(b",")[0] + b"\r\n" for line in here.splitlines())
        assert here == there, file  # graphs, tables of edges and the history: each byte
    learned = json.loads((tmp_path / "here" / "run.json").read_text())
    assert record["result"] | {"seconds": 0} == learned["result"] | {"seconds": 0}
    assert record["federation"]["attempts"] == 1
    assert record["federation"]["left_out"] == {}


def identity(fed: RealFederation, site: str):
    startup = fed.home(site) / "kit" / "startup"
    return read_signer(startup / "client.crt", startup / "client.key")


def trust_of(fed: RealFederation) -> Trust:
    return read_trust(fed.home("kyoto") / "kit" / "startup" / "rootCA.pem")


def test_no_site_can_make_another_answer(fed):
    """With its own key it signs a request; or it hands on one that the coordinator sent it."""
    startup = fed.fed / "server" / "startup"
    server, trust = read_signer(startup / "server.crt", startup / "server.key"), trust_of(fed)
    request = {"kind": "status"}
    own = SignedMessage(request, b"", identity(fed, "kyoto")).to("lima")[0]
    handed_on = SignedMessage(request, b"", server).to("kyoto")[0]
    right = SignedMessage(request, b"", server).to("lima")[0]
    service = open_service(fed.home("lima"))
    try:
        for data in (own, handed_on):
            reply = open_message(service.reply(data), trust)
            assert (reply.head["kind"], reply.head["code"], reply.body) == ("refusal", "not-coordinator", b"")
        assert open_message(service.reply(right), trust).head["kind"] == "answer"
    finally:
        service.close()
    logged = [entry for entry in entries(fed.home("lima") / "audit.jsonl") if entry.get("code") == "not-coordinator"]
    assert "'kyoto'" in logged[-2]["detail"]
    assert "a request to 'kyoto' was brought here" in logged[-1]["detail"]
