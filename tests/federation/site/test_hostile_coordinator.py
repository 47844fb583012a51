"""A coordinator with a proper key asks for more than a study needs: the site refuses, and its own log says why."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from silograph.federation.envelope import SignedMessage, VerifiedMessage, open_message
from silograph.federation.names import RUN_ID, new_run_name
from silograph.federation.site import state
from silograph.federation.site.audit import entries
from silograph.federation.site.service import MOST_RUNS_OPEN
from silograph.federation.study_file import parse_study
from silograph.graph.pairs import Pairs
from silograph.methods.common.setup import build_setup
from silograph.methods.common.setup_checks import ScalarsError, SetupSilo
from silograph.protocol.codec import decode_update, encode_task
from silograph.protocol.messages import Header, Task, parts_of
from testing.conformance import assert_conforms
from testing.consortium import NODES, SITES, Consortium, Loopback, approve, close, rewrite, write_table

SITE = "oslo"
GIVEN = "alpha = 0.5\nbeta = 0.25\n"
COUPLED = 'method = "exact"\ncoupling = 0.5\n' + GIVEN
RUN = "00000000000000aa.1"


class Hostile:
    """Writes to one site whatever it likes, and signs it properly."""

    def __init__(self, folder: Path, learn: str = COUPLED, **limits: Any) -> None:
        self.consortium = Consortium(folder, **limits)
        self.home = folder / SITE
        self.study = f'name = "test"\nnodes = "nodes.txt"\n[learn]\n{learn}\n'
        self.service = self.consortium.service(SITE)

    def ask(self, head: Mapping[str, Any], body: bytes) -> VerifiedMessage:
        message, _ = SignedMessage(dict(head), body, self.consortium.server).to(SITE)
        return open_message(self.service.reply(message), self.consortium.trust)

    def hello(self, run: str = RUN, *, study: str | None = None, **more: Any) -> str | None:
        about = {"study": self.study if study is None else study, "nodes": NODES, "silos": SITES, **more}
        return self.ask({"kind": "hello", "run": run}, json.dumps(about).encode()).head.get("code")

    def round(self, step: str, run: str = RUN, *, number: int = 1, method: str = "setup", **more: Any) -> Any:
        """The numbers that the site answers with, or the code of its refusal."""
        scalars = more.pop("scalars", {})
        header = Header(run=run, method=method, step=step, round=number)
        head = {"kind": "round", "run": run, "stage": "learn" if scalars else "setup", "step": step, "round": number}
        head["n_silos"] = more.pop("n_silos", len(SITES))
        reply = self.ask({**head, "scalars": scalars}, encode_task(Task(header=header, parts=more)))
        return reply.head.get("code") or parts_of(decode_update(reply.body))

    def detail(self) -> str:
        return str(list(entries(self.home / "audit.jsonl", last=1))[-1].get("detail"))

    def restart(self) -> None:
        self.service.close()
        self.service = self.consortium.service(SITE)


@pytest.fixture
def hostile(tmp_path):
    made = []

    def make(learn: str = COUPLED, **limits: Any) -> Hostile:
        made.append(Hostile(tmp_path / str(len(made)), learn, **limits))
        return made[-1]

    yield make
    close({str(number): one.service for number, one in enumerate(made)})


# --- the parameters of the model ------------------------------------------------------------------------------------

Change = Callable[[dict[str, float]], dict[str, float]]


def learn_with(folder: Path, learn: str, change: Change, *, restarted: bool = False, **limits: Any) -> tuple[Any, str]:
    """An honest run up to the first request for learning; then what the site says to other scalars, and its log."""
    consortium = Consortium(folder, **limits)
    run, services, asked, said = consortium.run(learn), consortium.services(), [], []

    def tamper(site, data, service):
        request = open_message(data, consortium.trust)
        asked.extend([data] if site == SITE else [])
        if site != SITE or request.head.get("stage") != "learn" or said:
            return service(data)
        if restarted:
            services[SITE].close()
            services[SITE] = consortium.service(SITE)
            services[SITE].reply(asked[0])
        reply = open_message(services[SITE].reply(ask_for_more(request, data)), consortium.trust)
        said.append(reply.head.get("code") or parts_of(decode_update(reply.body)))
        said.append(str(list(entries(folder / SITE / "audit.jsonl", last=1))[-1].get("detail")))
        return services[SITE].reply(data)

    def ask_for_more(request: VerifiedMessage, data: bytes) -> bytes:
        scalars = change(dict(request.head["scalars"]))
        alone = scalars["rho"] == 0
        method, step, parts = ("independent", "learn", {}) if alone else ("exact", "start", {"u": np.full(28, 0.1)})
        task = Task(header=Header(run=run.run_id, method=method, step=step, round=1), parts=parts)
        changes = {"body": encode_task(task), "scalars": scalars, "step": step, "round": 1}
        return rewrite(data, consortium.server, trust=consortium.trust, **changes)

    consortium.run_attempt(run, Loopback(services, tamper))
    close(services)
    return said[0], said[1]


def test_a_study_with_coupling_cannot_be_made_one_without_and_the_graph_stays(tmp_path):
    """With ρ = 0 the exact method is `independent`, whose first answer is the site's graph."""
    said, detail = learn_with(tmp_path, COUPLED, lambda scalars: scalars | {"rho": 0.0, "lam": 0.0})
    assert said == "parameters"
    assert "rho: expected" in detail


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    ("learn", "change", "name"),
    [
        (COUPLED, lambda s: s | {"rho": 0.0, "lam": 0.0}, "rho"),
        (COUPLED, lambda s: s | {"rho": 0.0, "lam": 0.0, "alike": 1.0}, "alike"),
        (COUPLED, lambda s: s | {"rho": s["rho"] / 2}, "rho"),
        (COUPLED, lambda s: s | {"rho": 1e-300, "lam": 0.0}, "rho"),
        (COUPLED, lambda s: s | {"lam": 1e6}, "lam"),
        (COUPLED, lambda s: s | {"alike": 0.5}, "alike"),
        (COUPLED, lambda s: s | {"alpha": 2 * s["alpha"]}, "alpha, beta"),
        (COUPLED, lambda s: s | {"beta": 2 * s["beta"]}, "alpha, beta"),
        (COUPLED + "sparsity = 0\n", lambda s: s | {"rho": 1e-9}, "rho"),
        (COUPLED + "sparsity = 0\n", lambda s: s | {"lam": 0.1}, "lam"),
        ('method = "exact"\ncoupling = 0.5\ndegree = 3', lambda s: s | {"alpha": 2 * s["alpha"]}, "alpha, beta"),
        ('method = "exact"\ncoupling = 0.5\ndegree = 3', lambda s: s | {"beta": 2 * s["beta"]}, "alpha, beta"),
        ('method = "exact"\nnu = 2.0\nlam = 0.05\n' + GIVEN, lambda s: s | {"rho": 0.0}, "rho"),
        ('method = "exact"\nnu = 2.0\nlam = 0.05\n' + GIVEN, lambda s: s | {"lam": 0.0}, "lam"),
        ('method = "exact"\ncoupling = 0\n' + GIVEN, lambda s: s | {"rho": 0.3}, "rho"),
        ('method = "pooled"\n' + GIVEN, lambda s: s | {"alike": 1.0}, "rho, alike"),
        ('method = "ditto"\n' + GIVEN, lambda s: s | {"alike": 1.0}, "alike"),
    ],
)
def test_parameters_to_which_study_and_set_up_cannot_lead_are_refused(tmp_path, learn, change, name, restarted):
    said, detail = learn_with(tmp_path, learn, change, restarted=restarted)
    assert said == "parameters"
    assert detail.startswith(f"{name}: expected")


@pytest.mark.parametrize("coupling", [0.0, 0.5])
def test_honest_sites_whose_data_are_the_same_learn_the_pooled_graph(tmp_path, coupling):
    """Then ρ = 0 in a study with coupling, and every site sees by its own force that it may be."""
    consortium = Consortium(tmp_path)
    for site in SITES:
        write_table(consortium.table(site), 0)
    run = consortium.run(f'method = "exact"\ncoupling = {coupling}\n{GIVEN}')
    consortium.finish(run)
    assert_conforms(run, consortium.tables)


def test_wrong_parameters_end_the_run_so_that_nobody_finds_the_bound_by_trying(tmp_path):
    consortium, codes = Consortium(tmp_path), []
    run, services = consortium.run(COUPLED), consortium.services()

    def tamper(site, data, service):
        request = open_message(data, consortium.trust)
        if site == SITE and request.head.get("stage") == "learn" and not codes:
            wrong = dict(request.head["scalars"]) | {"rho": 1e-9}
            messages = (rewrite(data, consortium.server, trust=consortium.trust, scalars=wrong), first[0], data)
            codes.extend(open_message(service(one), consortium.trust).head.get("code") for one in messages)
        first.extend([data] if site == SITE else [])
        return service(data)

    first: list[bytes] = []
    consortium.run_attempt(run, Loopback(services, tamper))
    close(services)
    assert codes == ["parameters", "ended", "unknown-run"]


@pytest.mark.parametrize(("share", "code"), [(1e-9, "parameters"), (0.999, "parameters"), (1.001, None)])
def test_a_pull_that_was_too_weak_from_the_beginning_is_refused_by_the_silos_own_force(hostile, share, code):
    """ρ = coupling · ρ_ref, and ρ_ref² is a mean of which the silo knows one term."""
    one, u = hostile(), np.full(28, 0.1)
    assert one.hello() is None
    one.round("costs")
    square = one.round("forces", number=2, u=u, alpha=0.5, beta=0.25)["force_square"]
    rho = share * 0.5 * float(np.sqrt(square / 3))
    one.round("empty", number=3, rho=rho, alpha=0.5, beta=0.25)
    scalars = {"alpha": 0.5, "beta": 0.25, "rho": rho, "lam": 0.0, "alike": 0.0}
    said = one.round("start", method="exact", u=u, scalars=scalars)
    assert (said if isinstance(said, str) else None) == code


def test_learning_is_not_answered_before_set_up(hostile):
    one = hostile()
    scalars = {"alpha": 0.5, "beta": 0.25, "rho": 0.0, "lam": 0.0, "alike": 0.0}
    assert one.hello() is None
    assert one.round("learn", method="independent", scalars=scalars) == "out-of-turn"
    assert "expected set-up to end with the step 'forces'" in one.detail()
    assert not (one.home / "answered").exists()


@pytest.mark.parametrize(
    ("learn", "steps", "says"),
    [
        (COUPLED, [("forces", {"u": 0.1, "alpha": 0.5, "beta": 0.25})], "another step"),
        (COUPLED, [("rule", {})], "another step"),
        (COUPLED, [("degree", {"theta": 1.0})], "another step"),
        (COUPLED, [("costs", {}), ("costs", {})], "another step"),
        (COUPLED, [("costs", {}), ("forces", {"u": 0.1, "alpha": 5.0, "beta": 2.5})], "alpha, beta"),
        (COUPLED, [("costs", {}), *[("forces", {"u": 0.1, "alpha": 0.5, "beta": 0.25})] * 2], "another step"),
        ('method = "pooled"\n' + GIVEN, [("costs", {}), ("costs", {})], "one sum"),
        ('method = "ditto"\n' + GIVEN, [("costs", {}), ("forces", {"u": 0.1, "alpha": 0.5, "beta": 0.25})], "another"),
        ('method = "exact"\ndegree = 3', [("degree", {"theta": 1.0})], "another step"),
        ('method = "exact"\ndegree = 3', [("rule", {}), *[("degree", {"theta": 1.0})] * 61], "at most 60 trials"),
    ],
)
def test_set_up_is_asked_in_its_order_and_each_step_as_often_as_the_study_needs(hostile, learn, steps, says):
    one = hostile(learn)
    assert one.hello() is None
    answers = []
    for number, (step, parts) in enumerate(steps, start=1):
        sent = {name: np.full(28, part) if name == "u" else part for name, part in parts.items()}
        answers.append(one.round(step, number=number, **sent))
    assert [type(answer) for answer in answers] == [dict] * (len(steps) - 1) + [str]
    assert answers[-1] in ("out-of-turn", "parameters")
    assert says in one.detail()


# --- the method that the parameters make of a study -----------------------------------------------------------------


@pytest.mark.parametrize(("methods", "code"), [(("exact",), "method"), (("exact", "independent"), None)])
def test_what_a_study_comes_down_to_must_be_allowed_too(tmp_path, methods, code):
    """With coupling 0, the exact method is `independent`."""
    uncoupled = 'method = "exact"\ncoupling = 0\n' + GIVEN
    said, detail = learn_with(tmp_path, uncoupled, lambda scalars: scalars, methods=methods)
    assert (said if isinstance(said, str) else None) == code
    assert ("'independent' is not among those that site.toml allows" in detail) == (code is not None)


@pytest.mark.parametrize(("steps", "code"), [(100, None), (101, "method"), (10**15, "method")])
def test_a_study_that_would_keep_the_site_computing_is_refused_at_once(hostile, steps, code):
    one = hostile(f'method = "fedavg"\nrounds = 3\nlocal_steps = {steps}\n' + GIVEN)
    assert one.hello() == code
    if code:
        assert f"asks for {steps} local steps, site.toml allows 100" in one.detail()


# --- who takes part -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("silos", "limits", "code"),
    [
        ((SITE,), {}, "sites"),
        ((SITE, "lima"), {}, None),
        ((SITE, "lima"), {"min_sites": 3}, "sites"),
        (SITES, {"min_sites": 3}, None),
        ((SITE, "nobody"), {}, "sites"),
        ((*SITES, "nobody"), {"min_sites": 3}, "sites"),
    ],
)
def test_a_site_is_not_asked_alone_or_with_sites_that_it_does_not_know(hostile, silos, limits, code):
    """A study without sites and quorum promises nothing: the site's own file does."""
    assert hostile(**limits).hello(silos=silos) == code


def test_before_a_study_is_approved_its_sites_tell_nothing_of_the_limits(hostile):
    one = hostile(min_sites=3, approve_all=False)
    assert [one.hello(silos=silos) for silos in ((SITE, "lima"), SITES, (SITE, "nobody"))] == ["unapproved"] * 3


def test_without_a_list_of_sites_nobody_is_answered(hostile):
    one = hostile()
    (one.home / "federation.invite").unlink()
    assert one.hello() == "sites"
    assert "federation.invite" in one.detail()


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_that_was_pushed_out_is_not_answered_a_second_time(hostile, monkeypatch):
    monkeypatch.setattr(state, "MOST_RUNS_KEPT", 3)
    one = hostile()
    first, *others = (f"{new_run_name()}.1" for _ in range(5))
    for run in (first, *others):
        assert one.hello(run) is None
        assert isinstance(one.round("costs", run), dict)
        one.restart()
    assert not (one.home / "state" / first).exists()
    for _ in range(2):
        assert one.hello(first) == "ended"
        assert one.round("costs", first) == "unknown-run"
        one.restart()
    assert one.hello(others[-1]) is None


def test_a_run_whose_state_was_removed_by_hand_is_not_answered_a_second_time(hostile):
    one = hostile()
    assert one.hello() is None
    assert isinstance(one.round("costs"), dict)
    one.service.close()
    (one.home / "state").rename(one.home / "elsewhere")
    one.restart()
    assert one.hello() == "ended"


@pytest.mark.parametrize("restarted", [False, True])
def test_greetings_push_out_no_run_that_was_answered_and_leave_nothing(hostile, monkeypatch, restarted):
    monkeypatch.setattr(state, "MOST_RUNS_KEPT", 3)
    one = hostile()
    assert one.hello() is None
    assert isinstance(one.round("costs"), dict)
    for _ in range(30):
        assert one.hello(f"{new_run_name()}.1") is None
        if restarted:
            one.restart()
    assert len(list((one.home / "state").iterdir())) <= MOST_RUNS_OPEN
    assert [path.name for path in (one.home / "answered").iterdir()] == [RUN]
    one.restart()
    assert [path.name for path in (one.home / "state").iterdir()] == [RUN]
    assert one.hello() is None
    u = np.full(28, 0.1)
    assert isinstance(one.round("forces", number=2, u=u, alpha=0.5, beta=0.25), dict)


@pytest.mark.parametrize(
    "run",
    ["..", "........", "a..b....", "another-run.1", "0" * 16]
    + [f"{'0' * 16}{more}" for more in (".0", ".1.1", "..", "./1", ".1\n", f".{'1' * 40}")],
)
def test_only_names_as_the_coordinator_makes_them_are_runs(hostile, run):
    one = hostile()
    assert one.hello(run) == "malformed"
    assert not (one.home / "state").exists()
    assert RUN_ID.fullmatch(f"{new_run_name()}.12")


# --- counts ---------------------------------------------------------------------------------------------------------


def test_rounds_are_counted_over_all_studies_and_no_approval_sets_them_back(hostile):
    one = hostile(max_rounds_table=3)
    studies = [one.study + f"# {number}\n" for number in range(5)]
    said = []
    for study in studies:
        run = f"{new_run_name()}.1"
        assert one.hello(run, study=study) is None
        said.append(one.round("costs", run))
        approve(one.home, study.encode(), fresh=True)
        one.restart()
    assert [one if isinstance(one, str) else None for one in said] == [None] * 3 + ["rounds"] * 2
    assert (one.home / "rounds" / "table").read_text() == "3"


def test_a_damaged_count_is_not_taken_for_none(hostile):
    one = hostile()
    assert one.hello() is None
    (one.home / "rounds").mkdir()
    (one.home / "rounds" / "table").write_text("many")
    assert one.round("costs") == "internal"


# --- samples, and what the log keeps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_samples", "limits", "code"), [(30, {}, None), (29, {}, "samples"), (29, {"min_samples": 29}, None)]
)
def test_fewer_samples_than_nodes_are_not_learned_from_unless_the_site_says_so(hostile, n_samples, limits, code):
    one, nodes = hostile(**limits), [f"node {k}" for k in range(30)]
    write_table(one.home / f"{SITE}.csv", 2, n_samples=n_samples, nodes=nodes)
    assert one.hello(nodes=nodes) == code
    if code:
        assert "has 29 samples, the least is 30" in one.detail()


def test_the_log_has_the_digest_of_what_left(hostile):
    one = hostile()
    one.hello()
    message, _ = SignedMessage(
        {"kind": "round", "run": RUN, "stage": "setup", "step": "costs", "round": 1, "scalars": {}, "n_silos": 3},
        encode_task(Task(header=Header(run=RUN, method="setup", step="costs", round=1), parts={})),
        one.consortium.server,
    ).to(SITE)
    body = open_message(one.service.reply(message), one.consortium.trust).body
    entry = list(entries(one.home / "audit.jsonl", last=1))[-1]
    assert (entry["what"], entry["sha256"]) == ("answered", hashlib.sha256(body).hexdigest())


# --- how many silos there are said to be ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_silos", [0, 1, 7, 1001, 2**70, -1])
def test_a_number_of_silos_that_cannot_be_or_is_beyond_the_limit_is_refused(hostile, n_silos):
    one = hostile(patients={SITE: 6})
    one.hello()
    assert one.round("costs", n_silos=n_silos) == "sites"
    assert "expected 8 or more, and site.toml allows 1000" in one.detail()


@pytest.mark.parametrize("n_silos", [None, 8.0, "8", True])
def test_a_number_of_silos_that_is_none_is_malformed(hostile, n_silos):
    one = hostile(patients={SITE: 6})
    one.hello()
    assert one.round("costs", n_silos=n_silos) == "malformed"


def test_the_number_of_silos_cannot_change_during_a_run_nor_after_a_restart(hostile):
    one = hostile(max_silos=20)
    one.hello()
    assert "cost" in one.round("costs", n_silos=9)
    parts = {"u": np.full(28, 0.1), "alpha": 0.5, "beta": 0.25}
    assert one.round("forces", number=2, n_silos=12, **parts) == "conflict"
    one.restart()
    one.hello()
    assert one.round("costs", n_silos=12) == "conflict"
    assert "force_square" in one.round("forces", number=2, n_silos=9, **parts)


def test_the_pull_is_held_against_the_forces_of_all_the_sites_silos_together():
    """ρ_ref² is a mean over all silos, to which those of one site add: each by itself could be sure of less."""
    text = f'name = "a"\nnodes = ["a", "b"]\n[learn]\n{COUPLED}'
    setup = build_setup(parse_study(text.encode(), source="study").settings, Pairs.all(2))
    kept = [
        SetupSilo(step="empty", alpha=0.5, force_square=square, u_square=1.0, rho=0.3) for square in (1.0, 2.0, 6.0)
    ]
    scalars = {"alpha": 0.5, "beta": 0.25, "rho": 0.3, "lam": 0.0, "alike": 0.0}
    least = 0.5 * np.sqrt(9.0 / np.array([10, 25, 26]))  # of the coupling 0.5
    assert [bool(one <= 0.3) for one in least] == [False, True, True]
    setup.check_scalars(kept, scalars, 25)
    setup.check_scalars(kept, scalars, 26)
    setup.check_scalars(kept[:1], scalars, 10)  # one of them alone would have let it pass
    with pytest.raises(ScalarsError, match=r"rho: expected 0\.47"):
        setup.check_scalars(kept, scalars, 10)
