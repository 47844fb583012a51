"""A federation that really runs: sites mask their numbers for keys that their own people pinned, and for no others."""

import pytest

pytest.importorskip("nvflare")

from silograph.federation.site.audit import entries
from testing.real_federation import RealFederation

pytestmark = [pytest.mark.federation, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]


def left(fed: RealFederation, site: str) -> list[str]:
    """What left a site in answers to rounds, by its own log."""
    return [
        str(entry["left"]) for entry in entries(fed.home(site) / "audit.jsonl") if "round" in entry and "left" in entry
    ]


def test_a_masked_study_waits_for_a_pin_and_then_ends_in_the_bits_of_one_place(tmp_path):
    with RealFederation(tmp_path / "fed") as fed:
        text, out = fed.masked_text('method = "oneshot"\ndegree = 3'), tmp_path / "run"
        fed.command("site", "pin", "oslo", "--remove", "--folder", fed.home("lima"))
        study = fed.write_study(text)
        done = fed.command("federation", "run", study, "--out", out, "--folder", fed.fed, code=1)
        assert "lima" in done.stderr
        assert "silograph site pin" in done.stderr
        assert all(left(fed, site) == [] for site in fed.sites)
        fed.command("site", "pin", "oslo", fed.keys["oslo"], "--folder", fed.home("lima"))
        fed.resume(out)
        fed.assert_conforms(out, text)
        # Equal bits alone would not show whether the sums were masked
        assert all(left(fed, site)[0].startswith("a masked sum: cost") for site in fed.sites)
