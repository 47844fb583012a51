"""How commands ask the server's desk: at once, or with the patience of somebody whose network comes and goes."""

import base64
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from silograph.errors import ProtocolError
from silograph.federation.coordinator.supervisor import ServerAwayError
from silograph.federation.folders import FederationFolder
from silograph.federation.nvflare.authority import read_federation
from silograph.federation.nvflare.reach import check_reach

RETRY_SECONDS = 2.0  # between two tries at a server that does not answer


@contextmanager
def desk(home: Path) -> Iterator[Any]:
    """A session of the lead's; raises within seconds where the server does not answer."""
    check_reach(read_federation(home), FederationFolder(home).lead)
    from silograph.federation.nvflare.session import lead_session  # with NVFlare, which takes seconds to load

    with lead_session(home) as session:
        yield session


class Patient:
    """Asks until there is an answer, and says when the server is away, and when it is back."""

    def __init__(self, session: Any, say: Callable[[str], None]) -> None:
        self._session, self._say = session, say
        self._away = ""

    def ask(self, what: str, **about: object) -> dict[str, Any]:
        """The desk's answer."""
        while True:
            try:
                answer: dict[str, Any] = self._session.ask(what, **about)
            except ServerAwayError as error:
                if str(error) != self._away:
                    self._away = str(error)
                    self._say(f"{error} Waiting for it; what was begun there goes on.")
                time.sleep(RETRY_SECONDS)
            else:
                if self._away:
                    self._away = ""
                    self._say("The server answers.")
                return answer

    def fetch(self, run: str, file: dict[str, Any], folder: Path) -> None:
        """One file of a run's results, as the desk listed it, into a folder."""
        path = folder / file["name"]
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ProtocolError(f"{file['name']!r}: the server names a result that would lie outside of --out.")
        path.parent.mkdir(parents=True, exist_ok=True)
        found, size = hashlib.sha256(), 0
        with path.open("wb") as target:
            while size < file["size"]:
                data = base64.b64decode(self.ask("fetch", run=run, file=file["name"], start=size)["data"])
                if not data:
                    break
                target.write(data)
                found.update(data)
                size += len(data)
        if (size, found.hexdigest()) != (file["size"], file["sha256"]):
            raise ProtocolError(f"{file['name']}: did not arrive as the server has it. Go on with --resume.")
