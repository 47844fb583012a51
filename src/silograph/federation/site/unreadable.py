"""What a full read of the data has found wrong with them as they are now, for the site's own people."""

from silograph._util.documents import parse_json
from silograph.errors import SilographError
from silograph.federation.folders import SiteFolder
from silograph.federation.refusals import Refused
from silograph.federation.site.data import look_at_data
from silograph.federation.site.reading import problem_of
from silograph.federation.site.settings import read_site


def known_problem(folder: SiteFolder) -> str | None:
    """The problem of this version of the data, in one line; none if nobody has found one.

    Only where a problem was noted of some version, the files are read for their checksums: that tells whether it is
    this one.
    """
    try:
        if not parse_json(folder.read.read_bytes()).get("problem"):
            return None
        found = problem_of(folder, look_at_data(read_site(folder.path), folder.path).version)
    except (OSError, ValueError, SilographError, Refused):  # which others tell
        return None
    return " ".join(found.splitlines()) if found else None
