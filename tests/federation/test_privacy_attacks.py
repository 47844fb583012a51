"""What a coordinator tries by the studies that it writes: ranges, units, an epsilon that is none, other nodes."""

import pytest

from silograph.errors import ParameterError
from silograph.federation.coordinator.run import new_run
from silograph.federation.envelope import open_message
from silograph.federation.keys import Terms, read_statement
from silograph.federation.refusals import REASONS
from silograph.federation.site.budget import Budget
from silograph.federation.site.leaving import promises, weak_promises
from silograph.federation.study_file import parse_study
from silograph.methods.common.settings import StudySettings
from silograph.privacy.settings import Privacy
from testing.consortium import NODES, SITES, Consortium, Loopback, close

ONESHOT = 'method = "oneshot"\ndegree = 3'
NOISE = "epsilon = {}\ndelta = 1e-5\nmin_samples = 20\n"


def codes(consortium: Consortium, run) -> set[str]:
    services = consortium.services()
    outcome = consortium.run_attempt(run, Loopback(services))
    close(services)
    return {one["reason"] for one in outcome.troubles}


def test_a_masked_study_has_no_range_by_whose_refusals_one_site_could_be_measured(tmp_path):
    """With one pair allowed, 58 ranges told a site's own number to the last digit, and nothing was charged."""
    consortium = Consortium(tmp_path)
    with pytest.raises(ParameterError, match="scale: whether a site refuses"):
        consortium.masked_run(ONESHOT, scale="[0.1, 10]")


def test_with_epsilon_no_unit_can_round_each_site_s_term_by_itself(tmp_path):
    """At 2^86 the terms were rounded to quarters before they were added: a share of the noise alone hid them."""
    consortium = Consortium(tmp_path)
    with pytest.raises(ParameterError, match="cost_unit"):
        consortium.masked_run(f"{ONESHOT}\ncost_unit = {2.0**86!r}", NOISE.format(1))
    with pytest.raises(ParameterError, match="cost_unit"):
        StudySettings(method="oneshot", privacy=Privacy(epsilon=1.0, delta=1e-5), cost_unit=2.0**86)


def test_a_large_epsilon_does_not_lead_past_the_rules_for_studies_without_noise(tmp_path):
    """Without epsilon_total, too: else two of them showed the row by which a table changed, despite sums_total."""
    consortium = Consortium(tmp_path, sums_total=1)
    privacy = f"[privacy]\n{NOISE.format(1e6)}"
    assert codes(consortium, consortium.run(ONESHOT, privacy, share_graphs="false")) == {REASONS["budget"]}
    assert not Budget(tmp_path / "oslo").openings()


def test_studies_with_noise_add_up_to_a_limit_that_nobody_had_to_write(tmp_path):
    consortium = Consortium(tmp_path)
    ended = []
    for number in range(8):
        privacy = f"[privacy]\n{NOISE.format(4 + number / 100)}"
        ended.append(codes(consortium, consortium.run(ONESHOT, privacy, share_graphs="false")))
    assert ended[:4] == [set()] * 4
    assert ended[-1] == {REASONS["budget"]}


def test_the_same_study_with_its_nodes_in_another_order_is_another_draw_and_is_paid_for(tmp_path):
    """Nodes may be in a file, which the hash does not have: what was kept for one order must not stand for another."""
    consortium = Consortium(tmp_path)
    first = consortium.masked_run(ONESHOT, NOISE.format(1))
    turned = new_run(tmp_path / "runs", first.study(), NODES[::-1], SITES)
    for run in (first, first.begin_anew(), turned):
        consortium.finish(run)
    one, other = Budget(tmp_path / "oslo").openings()
    assert one.key[:3] == other.key[:3]
    assert one.draw != other.draw


def test_a_site_tells_its_pairs_and_its_least_number_of_sites_only_where_nodes_may_be_missing(tmp_path):
    for missing, least in (("error", 3), ("allow", 4)):
        folder = tmp_path / missing
        consortium = Consortium(folder, sites=(*SITES, "bergen"), min_sites=4)
        run, services = consortium.masked_run(ONESHOT, missing_nodes=f'"{missing}"'), consortium.services()
        told = []

        def tamper(site, data, service, told=told, consortium=consortium):
            reply = service(data)
            if open_message(data, consortium.trust).head["kind"] == "key":
                told.append((site, open_message(reply, consortium.trust).body))
            return reply

        consortium.run_attempt(run, Loopback(services, tamper))
        close(services)
        terms = Terms.of(run.study(), run.run_id, consortium.sites, NODES, 28)
        assert {read_statement(body, site, terms, consortium.trust).least for site, body in told} == {least}
        said = " ".join(promises(run.study()))
        logged = (folder / "oslo" / "audit.jsonl").read_text()
        assert ("told to everybody" in said) == ("which pairs it has" in logged) == (missing == "allow")


def test_who_approves_is_told_of_a_promise_that_is_none(tmp_path):
    text = 'name = "s"\nnodes = ["a", "b"]\nshare_graphs = false\n[learn]\nmethod = "oneshot"\n[privacy]\n'
    weak = parse_study(f"{text}epsilon = 5\ndelta = 0.01\nmin_samples = 5\n".encode(), source="study")
    epsilon, delta = weak_promises(weak, 100)
    assert "1.5e+02 times as likely" in epsilon
    assert "not below one in 100" in delta
    usual = parse_study(f"{text}epsilon = 1\ndelta = 1e-5\nmin_samples = 5\n".encode(), source="study")
    assert weak_promises(usual, 100) == []
    assert weak_promises(parse_study(text.replace("[privacy]", "").encode(), source="study"), 100) == []
