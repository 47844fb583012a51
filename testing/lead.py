"""A lead who asks a server's desk, as commands do; the engine between them is left out."""

import json

from silograph.federation.coordinator.desk import VERSION, Desk
from silograph.federation.coordinator.run import open_run
from silograph.federation.folders import FederationFolder
from silograph.federation.invitation import Invitation, write_invitation
from testing.consortium import NODES, SITES

STUDY = 'name = "test"\nnodes = "nodes.txt"\n[learn]\nmethod = "algorithm1"\nrounds = 2\nalpha = 0.5\nbeta = 0.25\n'
RUN, OTHER = "0123456789abcdef", "f" * 16


class Lead:
    """Asks a desk as the command does."""

    def __init__(self, folder, keys=SITES):
        folder.mkdir(exist_ok=True)
        self.federation = FederationFolder(folder)
        about = Invitation(name="test", server="server", port=8002, sites=SITES, fingerprint="0" * 64, nodes=NODES)
        write_invitation(self.federation.about, about)
        self.heard: dict[str, float] = {}
        self.desk = Desk(self.federation, keys=lambda: dict.fromkeys(keys, "1" * 64), connected=lambda: self.heard)

    def raw(self, ask, **about):
        answer = self.desk.answer({"ask": ask, "version": VERSION, **about})
        return json.loads(json.dumps(answer))  # it travels as JSON

    def ask(self, ask, **about):
        answer = self.raw(ask, **about)
        assert "error" not in answer, answer
        return answer

    def refused(self, ask, **about):
        answer = self.raw(ask, **about)
        assert answer.keys() == {"error", "usage"}, answer
        return answer["error"]

    def begin(self, run=RUN, study=STUDY, nodes=NODES):
        return self.ask("begin", run=run, study=study, nodes=list(nodes), source="study.toml")

    def run(self, name=RUN):
        return open_run(self.federation.run(name))

    def state(self, name=RUN):
        return {run["run"]: run["state"] for run in self.ask("status")["runs"]}.get(name)
