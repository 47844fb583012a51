"""The budget: what was opened is written down before it leaves, counted once, and forgotten by no copy of a folder."""

import json
import math
import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import OutputError, ParameterError
from silograph.federation.refusals import Refused
from silograph.federation.site.audit import AuditLog, entries, verify
from silograph.federation.site.budget import Budget
from silograph.federation.site.openings import FORMAT, Opening, distinct, read_lines, salvage
from silograph.federation.site.settings import SiteSettings
from silograph.federation.site.spending import cost_of, more_that_fit, shown_by, spent_by
from silograph.privacy.accounting import epsilon_of
from silograph.privacy.settings import Privacy
from testing.consortium import processes

SITE = SiteSettings(name="oslo", federation="f", server="s", data=Path("oslo.csv"))
THREE, FOUR = ("kyoto", "lima", "oslo"), ("cairo", "kyoto", "lima", "oslo")
AT_ONE = cost_of(Privacy(epsilon=1.0, delta=1e-5))


def opening(number: int = 0, **changes) -> Opening:
    """One study after another, at ε = 1."""
    given = {"version": "v1", "cohort": THREE, "masked": True, "rho": AT_ONE, "delta": 1e-5, "name": f"study {number}"}
    return Opening(**{"study": f"{number:064x}", **given, **changes})


def plain(number: int = 0, **changes) -> Opening:
    """A study without noise."""
    return opening(number, **{"rho": math.inf, "delta": None, **changes})


def charge(folder: Path, one: Opening, limits: SiteSettings = SITE, **options) -> bool:
    return Budget(folder).charge(one, limits, run="run.1", **options)


def spent_entries(folder: Path) -> list[dict]:
    return [entry for entry in entries(folder / "audit.jsonl") if entry["what"] == "spent"]


# --- what is spent ----------------------------------------------------------------------------------------------------


some = st.builds(
    opening,
    st.integers(0, 2),
    version=st.sampled_from(["v1", "v2"]),
    cohort=st.sampled_from([THREE, FOUR]),
    rho=st.sampled_from([0.01, AT_ONE, math.inf]),
    most=st.integers(1, 3),
    draw=st.sampled_from(["", "a"]),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(some, max_size=8))
def test_what_is_spent_never_falls_and_is_the_sum_over_distinct_openings(charged):
    with tempfile.TemporaryDirectory() as name:
        folder, before, dearest = Path(name), 0.0, dict[tuple, float]()
        for one in charged:
            known = [each for each in dearest if each[:3] == one.key[:3] and one.draw in ("", each[3])]
            paid = any(dearest[each] >= one.person_rho for each in known)
            assert charge(folder, one, despite=True) != paid
            if not paid:
                dearest[one.key] = max(dearest.get(one.key, 0.0), one.person_rho)
            now = spent_by(Budget(folder).openings())
            assert now.rho >= before
            assert now.rho == pytest.approx(sum(dearest.values()), rel=1e-12)
            assert now.sums == sum(math.isinf(rho) for rho in dearest.values())
            before = now.rho
        assert len(spent_entries(folder)) == len(Budget(folder).lines())
        assert verify(folder / "audit.jsonl").problem is None


def test_a_total_of_one_admits_one_study_at_one_and_its_repetition_and_no_second(tmp_path):
    limits = replace(SITE, epsilon_total=1.0)
    assert charge(tmp_path, opening(1), limits)
    assert epsilon_of(spent_by(Budget(tmp_path).openings()).rho, 1e-5) == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(Refused, match=r"epsilon = 1 is spent, with this study it would be 1\.4") as refusal:
        Budget(tmp_path).check(opening(2), limits)
    assert refusal.value.code == "budget"
    with pytest.raises(Refused):
        charge(tmp_path, opening(2), limits)
    for again in (opening(1), replace(opening(1), run="run.2")):
        assert not charge(tmp_path, again, limits)
    for other in (opening(1, version="v2"), opening(1, cohort=FOUR), opening(1, draw="anew")):
        with pytest.raises(Refused):
            charge(tmp_path, other, limits)
    assert len(Budget(tmp_path).lines()) == 1


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0])
def test_as_many_studies_fit_as_is_said(tmp_path, epsilon):
    limits, rho = replace(SITE, epsilon_total=1.0), cost_of(Privacy(epsilon=epsilon, delta=1e-5))
    number = more_that_fit(epsilon, [], limits)
    assert number >= 1 / epsilon  # costs add up slower than ε does
    for each in range(number):
        assert more_that_fit(epsilon, Budget(tmp_path).openings(), limits) == number - each
        charge(tmp_path, opening(each, rho=rho), limits)
    with pytest.raises(Refused):
        charge(tmp_path, opening(number, rho=rho), limits)


def test_with_a_total_nothing_goes_without_noise_and_what_went_before_leaves_no_total(tmp_path):
    limits = replace(SITE, epsilon_total=100.0)
    with pytest.raises(Refused, match="has no epsilon; with epsilon_total = 100") as refusal:
        charge(tmp_path, plain(1), limits)
    assert refusal.value.code == "budget"
    charge(tmp_path, plain(1))
    with pytest.raises(
        Refused, match=r"openings without noise were made before \(1\), so that no total epsilon can hold"
    ):
        charge(tmp_path, opening(2), limits)
    assert more_that_fit(0.1, Budget(tmp_path).openings(), limits) == 0


def test_sums_without_noise_are_counted_and_those_with_it_are_not(tmp_path):
    limits = replace(SITE, sums_total=2)
    charge(tmp_path, plain(1), limits)
    charge(tmp_path, plain(1, version="v2", masked=False), limits)
    charge(tmp_path, plain(1), limits)
    charge(tmp_path, opening(3), limits)
    with pytest.raises(Refused, match=r"without noise were made before \(2\); site\.toml allows sums_total = 2"):
        charge(tmp_path, plain(2), limits)


def test_a_person_of_many_rows_costs_their_square(tmp_path):
    limits = replace(SITE, epsilon_total=1.0)
    with pytest.raises(Refused):
        charge(tmp_path, opening(1, most=2), limits)
    small = cost_of(Privacy(epsilon=0.25, delta=1e-5))
    charge(tmp_path, opening(1, rho=small, most=2), limits)
    assert spent_by(Budget(tmp_path).openings()).rho == 4 * small
    charge(tmp_path, opening(1, rho=small, most=3))  # once counted anew, it costs what it costs
    assert spent_by(Budget(tmp_path).openings()).rho == 9 * small


def test_the_cost_is_that_of_the_noise_which_is_drawn():
    from silograph.privacy.noise import plan_noise

    privacy = Privacy(epsilon=0.7, delta=1e-6, min_samples=50)
    noise = plan_noise(privacy, n_nodes=5, n_sites=3, min_samples=50, shared=False)
    assert cost_of(privacy) == noise.rho
    assert cost_of(Privacy()) == math.inf


# --- cohorts ----------------------------------------------------------------------------------------------------------


def test_masked_sums_over_two_cohorts_are_refused_without_noise_unless_people_say_so(tmp_path):
    charge(tmp_path, plain(1))
    charge(tmp_path, plain(2, version="v2", cohort=THREE[::-1]))  # the same sites
    for one in (plain(1, cohort=FOUR), plain(3, version="v2", cohort=THREE[:2])):
        with pytest.raises(Refused, match=r"over kyoto, lima, oslo left before .*shows the sites that came") as refusal:
            charge(tmp_path, one)
        assert refusal.value.code == "cohort"
    charge(tmp_path, opening(4, cohort=FOUR))  # with noise, it is paid for
    charge(tmp_path, plain(5, cohort=FOUR, masked=False))
    assert charge(tmp_path, plain(1, cohort=FOUR), despite=True)


def test_a_cohort_that_nobody_knows_any_more_counts_as_another(tmp_path):
    charge(tmp_path, plain(1, cohort=()))
    with pytest.raises(Refused, match="over sites that nobody knows any more left before"):
        charge(tmp_path, plain(2))


@pytest.mark.parametrize(
    ("earlier", "now", "said"),
    [
        ([plain(1, masked=False)], plain(2), "masks hide nothing of them"),
        ([plain(1)], plain(2, masked=False), "your term of these sums is known"),
        ([opening(1)], plain(2), "the epsilon promised then holds no more"),
        ([plain(1, masked=False)], opening(2, masked=False), "the total epsilon is without bound"),
        ([plain(1)], plain(2, version="v2"), "how your own numbers changed, as if they were told open"),
        ([opening(1)], opening(2, cohort=FOUR), "that hides a row, not a site"),
        ([plain(1)], plain(1), None),
        ([plain(1)], plain(2), None),
        ([opening(1)], opening(2), None),
    ],
)
def test_what_openings_show_together_is_said(earlier, now, said):
    lines = shown_by(now, earlier)
    assert lines == [] if said is None else any(said in line for line in lines)


# --- crashes, copies and edits ----------------------------------------------------------------------------------------


def test_a_crash_between_the_line_and_its_entry_leaves_the_charge(tmp_path):
    charge(tmp_path, opening(1))
    for name in ("audit.jsonl", "audit.head"):
        shutil.copy(tmp_path / name, tmp_path / f"{name}.kept")
    charge(tmp_path, opening(2))
    for name in ("audit.jsonl", "audit.head"):
        (tmp_path / f"{name}.kept").replace(tmp_path / name)
    assert [one.name for one in Budget(tmp_path).openings()] == ["study 1", "study 2"]
    assert [entry["opening"] for entry in spent_entries(tmp_path)] == [1, 2]
    assert len(Budget(tmp_path).openings()) == 2
    assert len(spent_entries(tmp_path)) == 2, "once"


@pytest.mark.parametrize("left", [1, 100, -1])
def test_a_line_torn_by_a_crash_was_never_in_force(tmp_path, left):
    charge(tmp_path, opening(1))
    whole = (tmp_path / "budget.jsonl").read_bytes()
    with (tmp_path / "budget.jsonl").open("ab") as file:
        file.write(whole.replace(b'"number":1', b'"number":2')[: left if left > 0 else len(whole) + left])
    assert len(Budget(tmp_path).openings()) == 1
    charge(tmp_path, opening(2))
    assert [line.number for line in Budget(tmp_path).lines()] == [1, 2]
    assert (tmp_path / "budget.jsonl").read_bytes().startswith(whole)


def test_what_cannot_be_written_down_is_not_charged(tmp_path):
    (tmp_path / "budget.lock").mkdir()
    with pytest.raises(OutputError):
        charge(tmp_path, opening(1))


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "budget.jsonl").read_bytes().splitlines(keepends=True)


def cheaper(line: bytes) -> bytes:
    return json.dumps(json.loads(line) | {"rho": 1e-6}, separators=(",", ":")).encode() + b"\n"


ALTERED = {
    "older": lambda lines: lines[:2],
    "cut in a line": lambda lines: [*lines[:2], lines[2][:-9]],
    "emptied": lambda lines: [],
    "a line less": lambda lines: [lines[0], lines[2]],
    "moved": lambda lines: [lines[1], lines[0], lines[2]],
    "edited": lambda lines: [cheaper(lines[0]), *lines[1:]],
    "the last edited": lambda lines: [*lines[:2], cheaper(lines[2])],
    "no opening": lambda lines: [b"{}\n", *lines],
}


@pytest.mark.parametrize("how", ALTERED)
def test_a_file_that_is_not_what_the_log_says_is_refused_and_accepted_with_all_that_was_spent(tmp_path, how):
    for number in (1, 2, 3):
        charge(tmp_path, opening(number))
    running = Budget(tmp_path)
    spent = spent_by(running.openings()).rho
    (tmp_path / "budget.jsonl").write_bytes(b"".join(ALTERED[how](lines_of(tmp_path))))
    for budget in (running, Budget(tmp_path)):
        asked = (budget.lines, partial(charge, tmp_path, opening(4)), partial(budget.check, opening(1), SITE))
        for ask in asked:
            with pytest.raises(Refused) as refusal:
                ask()
            assert refusal.value.code == "restored"
            assert "budget.jsonl" in refusal.value.detail
    altered = (tmp_path / "budget.jsonl").read_bytes()
    back, aside = Budget(tmp_path).accept(by="the engineer")
    assert (0 if aside is None else aside.read_bytes()) == (altered or 0)
    assert Budget(tmp_path).problem() is None
    assert spent_by(running.openings()).rho == spent
    assert back == len(set(running.openings()) - {one for one, _ in salvage(altered)})
    (said,) = [entry for entry in entries(tmp_path / "audit.jsonl") if entry["what"] == "restored"]
    assert (said["by"], said["detail"]) == (
        "the engineer",
        f"the budget goes on with 3 openings, {back} of them from the log",
    )
    charge(tmp_path, opening(4))
    assert [one.name for one in Budget(tmp_path).openings()] == [f"study {number}" for number in (1, 2, 3, 4)]
    assert verify(tmp_path / "audit.jsonl").problem is None


def test_a_file_that_is_gone_is_no_new_beginning(tmp_path):
    charge(tmp_path, opening(1))
    (tmp_path / "budget.jsonl").unlink()
    with pytest.raises(Refused, match="has 0 openings, the audit log tells of 1"):
        charge(tmp_path, opening(2))


def test_a_log_that_is_older_than_the_budget_is_noticed(tmp_path):
    charge(tmp_path, opening(1))
    for name in ("audit.jsonl", "audit.head"):
        shutil.copy(tmp_path / name, tmp_path / f"{name}.kept")
    AuditLog(tmp_path / "audit.jsonl").append({"what": "asked"})
    charge(tmp_path, opening(2))
    for name in ("audit.jsonl", "audit.head"):
        (tmp_path / f"{name}.kept").replace(tmp_path / name)
    with pytest.raises(Refused, match="the audit log lacks entry 2, which budget"):
        Budget(tmp_path).lines()
    Budget(tmp_path).accept(by="me")
    assert len(Budget(tmp_path).openings()) == 2


def test_openings_come_back_from_the_log_as_they_were(tmp_path):
    charged = [opening(1, most=3, unit="table", draw="d"), plain(2, masked=False), plain(3, masked=False, cohort=())]
    for one in charged:
        charge(tmp_path, one)
    (tmp_path / "budget.jsonl").unlink()
    assert Budget(tmp_path).accept(by="me")[0] == 3
    assert Budget(tmp_path).openings() == [replace(one, run="run.1") for one in charged]


def test_of_very_many_sites_the_log_keeps_too_little_so_that_they_come_back_as_unknown(tmp_path):
    charge(tmp_path, opening(1, cohort=tuple(f"site-{k}" for k in range(100))))
    (tmp_path / "budget.jsonl").unlink()
    Budget(tmp_path).accept(by="me")
    (back,) = Budget(tmp_path).openings()
    assert (back.cohort, back.rho) == ((), AT_ONE)


def test_a_file_of_a_later_silograph_is_not_taken_for_damaged(tmp_path):
    charge(tmp_path, opening(1))
    path = tmp_path / "budget.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"format":1', f'"format":{FORMAT + 1}'.encode()))
    with pytest.raises(ParameterError, match="has format 2, of a later silograph"):
        Budget(tmp_path).lines()


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 10**6), to=st.binary(min_size=1, max_size=3))
def test_no_byte_of_a_file_changes_unseen(at, to):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        charge(folder, opening(1))
        charge(folder, plain(2, masked=False))
        whole = (folder / "budget.jsonl").read_bytes()
        at %= len(whole)
        changed = whole[:at] + to + whole[at + 1 :]
        (folder / "budget.jsonl").write_bytes(changed)
        try:
            found = Budget(folder).openings()
        except (Refused, ParameterError):
            return
        assert changed == whole or changed.startswith(whole), "a line torn after the last one"
        assert len(found) == 2


def test_lines_are_read_again_as_they_were_written(tmp_path):
    for one in (opening(1, name="\u2028 \x7f é"), plain(2, cohort=(), masked=False)):
        charge(tmp_path, one)
    lines, problem = read_lines((tmp_path / "budget.jsonl").read_bytes())
    assert problem is None
    assert [line.opening.name for line in lines] == ["\u2028 \x7f é", "study 2"]
    assert lines[1].previous == lines[0].digest
    assert AuditLog(tmp_path / "audit.jsonl").has(lines[1].audit)
    assert distinct([line.opening for line in lines]) == [line.opening for line in lines]


# --- several processes ------------------------------------------------------------------------------------------------


def charge_many(folder: Path, first: int, connection) -> None:
    """Charge twenty studies in this process; send the numbers of those that were let pass."""
    limits = replace(SITE, epsilon_total=1.0)
    connection.recv()
    passed = []
    for number in range(first, first + 20):
        try:
            charge(folder, opening(number, rho=AT_ONE / 20), limits)
            passed.append(number)
        except Refused:
            pass
    connection.send(passed)


def test_processes_that_charge_at_the_same_time_do_not_exceed_the_limit_together(tmp_path):
    started = []
    for first in (0, 10, 100):  # two of them share ten studies
        ours, theirs = processes().Pipe()
        process = processes().Process(target=charge_many, args=(tmp_path, first, theirs))
        process.start()
        started.append((process, ours))
    for _, connection in started:
        connection.send("go")
    passed = {number for _, connection in started for number in connection.recv()}
    for process, _ in started:
        process.join(30)
    assert {int(one.study, 16) for one in Budget(tmp_path).openings()} == passed
    assert len(Budget(tmp_path).lines()) == len(passed) == 20
    assert [entry["opening"] for entry in spent_entries(tmp_path)] == list(range(1, 21))


def charge_on(folder: Path, first: int, connection) -> None:
    """Charge one study after another, and send the number of each once it is charged."""
    for number in range(first, first + 10_000):
        charge(folder, opening(number))
        connection.send(number)


def test_a_process_killed_at_any_moment_leaves_all_that_it_charged_and_at_most_one_more(tmp_path):
    done: set[int] = set()
    for attempt, milliseconds in enumerate([1, 2, 3, 5, 8, 13, 21, 34]):
        ours, theirs = processes().Pipe()
        process = processes().Process(target=charge_on, args=(tmp_path, 10_000 * attempt, theirs))
        process.start()
        theirs.close()
        done.add(ours.recv())
        time.sleep(milliseconds / 1000)
        process.kill()
        process.join(30)
        while True:
            try:
                done.add(ours.recv())
            except EOFError:
                break
        found = {int(one.study, 16) for one in Budget(tmp_path).openings()}
        assert done <= found
        assert len(found - done) <= 1, "charged, and not yet told"
        done = found
    assert [entry["opening"] for entry in spent_entries(tmp_path)] == list(range(1, len(done) + 1))


def test_a_long_log_is_searched_once(tmp_path):
    charge(tmp_path, opening(1))
    log, budget = AuditLog(tmp_path / "audit.jsonl"), Budget(tmp_path)
    for number in range(50):
        log.append({"what": "asked", "detail": f'"what":"spent" {number}'})  # nobody's text is taken for an entry
    budget.lines()
    size = (tmp_path / "audit.jsonl").stat().st_size
    assert log.search("spent", since=size) == (None, size)
    assert budget._searched == size
    charge(tmp_path, opening(2))  # elsewhere
    assert len(budget.lines()) == 2
