"""A coordinator wants the numbers of one row, or of one patient of many: by refusals, by studies that read alike
tables in two ways, by sums that differ in one table.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from silograph.federation.envelope import SignedMessage, open_message
from silograph.federation.names import new_run_name
from silograph.federation.site.audit import entries
from silograph.federation.site.settings import SiteSettings, write_site
from silograph.protocol.codec import decode_answer, encode_task
from silograph.protocol.fixed import vector_of
from silograph.protocol.messages import Header, Task, Update, parts_of
from testing.consortium import NODES as EIGHT
from testing.consortium import SERVER, SITES, Consortium, Loopback, write_roster

SITE, NODES = "oslo", ("a", "b", "c", "d")
LEARN = '[learn]\nmethod = "pooled"\nalpha = 0.5\nbeta = 0.25\nzeta = 1.0\n'


class Curious:
    """A coordinator with a proper key, and a site that approves everything within its limits."""

    def __init__(self, folder: Path, tables: Sequence[np.ndarray], **limits) -> None:
        self.consortium, self.home = Consortium(folder, sites=(SITE,)), folder / SITE
        self.several, self.limits = len(tables) > 1, limits
        (self.home / "site.toml").unlink()
        write_roster(self.home, SITES)
        data = Path("tables" if self.several else "one.csv")
        write_site(
            self.home,
            SiteSettings(name=SITE, federation="test", server=SERVER, data=data, **{"approve_all": True, **limits}),
        )
        self.give(tables)
        self.service = self.consortium.service(SITE)

    def give(self, tables: Sequence[np.ndarray]) -> None:
        """The site's tables; NaN is an empty cell."""
        (self.home / "tables").mkdir(exist_ok=True)
        for number, table in enumerate(tables):
            cells = [["" if np.isnan(x) else repr(float(x)) for x in row] for row in table]
            path = self.home / ("one.csv" if not self.several else f"tables/{number}.csv")
            path.write_text("\n".join([",".join(NODES), *map(",".join, cells)]))

    def ask(self, head: dict, body: bytes):
        message, _ = SignedMessage(head, body, self.consortium.server).to(SITE)
        return open_message(self.service.reply(message), self.consortium.trust)

    def costs(self, top: str = "", learn: str = LEARN, *, greet_only: bool = False):
        """The site's first answer to a study, opened; or the code of its refusal."""
        run, study = f"{new_run_name()}.1", f'name = "s"\nnodes = {json.dumps(NODES)}\n{top}\n{learn}'
        about = {"study": study, "nodes": NODES, "silos": SITES}
        hello = self.ask({"kind": "hello", "run": run}, json.dumps(about).encode())
        if greet_only or hello.head.get("code"):
            return hello.head.get("code")
        header = Header(run=run, method="setup", step="costs", round=1)
        head = {"kind": "round", "run": run, "stage": "setup", "step": "costs", "round": 1, "scalars": {}}
        n_silos = json.loads(hello.body)["n_silos"] + 2
        reply = self.ask(head | {"n_silos": n_silos}, encode_task(Task(header=header, parts={})))
        if reply.head.get("code"):
            return reply.head["code"]
        answer = decode_answer(reply.body)
        if isinstance(answer, Update):
            return parts_of(answer)
        return {name: vector_of(part, 0, 0) for name, part in answer.parts.items()}

    def detail(self) -> str:
        return str(list(entries(self.home / "audit.jsonl", last=1))[-1].get("detail"))


@pytest.fixture
def curious(tmp_path):
    made = []

    def make(tables: Sequence[np.ndarray], **limits) -> Curious:
        made.append(Curious(tmp_path / str(len(made)), tables, **limits))
        return made[-1]

    yield make
    for one in made:
        one.service.close()


def patients(n_tables: int = 8, n_rows: int = 30) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.normal(size=(n_rows, len(NODES))) * rng.uniform(0.5, 2.0) for _ in range(n_tables)]


def cost(table: np.ndarray, left: int, right: int) -> float:
    return float(((table[:, left] - table[:, right]) ** 2).mean())


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_no_range_of_a_study_finds_the_patient_whose_numbers_are_the_largest(curious):
    """A greeting costs nothing: by halves, the range at which a site refuses is found to the last digit."""
    tables = patients()
    one, (low, high) = curious(tables), (0.0, 100.0)
    for _ in range(40):
        middle = (low + high) / 2
        refused = one.costs(f'scale = [1e-12, {middle!r}]\nallow = [["a", "b"]]', greet_only=True) == "scale"
        low, high = (middle, high) if refused else (low, middle)
    each = [cost(table, 0, 1) for table in tables]
    assert high == pytest.approx(np.mean(each), rel=1e-9), "which the sum tells, too"


def test_no_unit_of_a_study_tells_how_large_one_patients_numbers_are(curious):
    """The unit is a power of two, and a site refuses costs of more than 2⁶⁰ of them."""
    tables, powers = patients(), range(-60, -50)
    one = curious(tables)
    units = [LEARN + f"cost_unit = {2.0**k!r}\n" for k in powers]
    said = [one.costs('allow = [["a", "b"]]', learn, greet_only=True) for learn in units]
    total = sum(cost(table, 0, 1) for table in tables)
    assert said == ["data" if total > 2.0 ** (k + 60) else None for k in powers]


# --- two ways to read the same tables ---------------------------------------------------------------------------------


def row_between(some: np.ndarray, every: np.ndarray, n_rows: int) -> np.ndarray:
    """What is told of one row by mean squared differences with it and without."""
    return (n_rows + 1) * every - n_rows * some


def test_a_row_with_a_gap_is_not_told_by_leaving_it_out_in_one_study_and_not_in_the_next(curious):
    table = np.random.default_rng(0).normal(size=(60, 4))
    table[7, 3] = np.nan
    one, (a, b, c) = curious([table]), table[7, :3]
    whole = one.costs("missing = 'rows'")["cost"]
    every = one.costs("missing = 'pairs'")
    if not isinstance(every, str):
        found = row_between(whole, every["cost"], 59)[[0, 1, 3]]  # ab, ac, bc
        assert not np.allclose(found, [(a - b) ** 2, (a - c) ** 2, (b - c) ** 2])
    assert every == "unapproved"
    assert "show rows with gaps or missing nodes by themselves" in one.detail()
    assert not isinstance(one.costs("missing = 'rows'\n# again"), str)


def test_nor_in_the_other_order_nor_by_way_of_other_versions(curious):
    rows = np.random.default_rng(0).normal(size=(140, 4))
    rows[7, 3] = np.nan
    one = curious([rows[:60]])
    assert not isinstance(one.costs("missing = 'pairs'"), str)
    assert one.costs("missing = 'rows'") == "unapproved"
    one.give([rows[:100]])
    assert not isinstance(one.costs("missing = 'pairs'"), str), "forty rows came"
    one.give([rows])
    assert one.costs("missing = 'rows'") == "unapproved"
    assert not isinstance(one.costs("missing = 'pairs'"), str)


def test_a_patient_with_gaps_is_not_told_by_two_ways_to_treat_them(curious):
    tables = patients()
    tables[2][4, 1] = np.nan
    one = curious(tables)
    whole = one.costs("missing = 'rows'")["cost"]
    every = one.costs("missing = 'pairs'")
    if not isinstance(every, str):
        rest = np.delete(tables[2], 4, axis=0)
        told = 30 * (every["cost"] - whole)[1] + cost(rest, 0, 2)  # N (c − c') = x² − c'
        assert told != pytest.approx((tables[2][4, 0] - tables[2][4, 2]) ** 2)
    assert every == "unapproved"
    assert "show tables with gaps or missing nodes by themselves" in one.detail()


def test_a_patient_with_a_constant_node_is_not_told_by_leaving_it_out_in_one_study(curious):
    tables = patients()
    tables[5][:, 3] = 0.25
    one = curious(tables)
    every = one.costs()["cost"]
    some = one.costs("missing_nodes = 'allow'")
    if not isinstance(some, str):
        assert (every - some["cost"])[2] != pytest.approx(cost(tables[5], 0, 3))
    assert some == "unapproved"


@pytest.mark.parametrize("tables", [patients(1, 60), patients()])
def test_tables_without_gaps_are_the_same_however_a_study_would_treat_them(curious, tables):
    one = curious(tables)
    for missing in ("error", "rows", "pairs"):
        for some in ("error", "allow"):
            assert not isinstance(one.costs(f"missing = '{missing}'\nmissing_nodes = '{some}'"), str)


# --- sums over fewer --------------------------------------------------------------------------------------------------


def test_samples_of_a_node_that_few_have_are_counted_without_those_of_the_others(curious):
    tables = [table[:3] if number < 5 else table for number, table in enumerate(patients(10))]
    for table in tables[5:]:
        table[:, 3] = np.nan
    one = curious(tables)
    assert one.costs("missing_nodes = 'allow'") == "samples"
    assert "has 15 samples for a pair of nodes, the least is 20" in one.detail()


def test_the_scale_that_a_site_tells_is_not_that_of_the_one_patient_who_lacks_a_node(tmp_path):
    """A mean over tables of means over their pairs weighs a table with fewer pairs otherwise than the sum does."""
    consortium, told = Consortium(tmp_path, patients={SITE: 6}), {}
    lacking = np.loadtxt(consortium.patient(SITE, 2), delimiter=",", skiprows=1)[:, :-1]
    names = ",".join(EIGHT[:-1])
    np.savetxt(consortium.patient(SITE, 2), lacking, delimiter=",", header=names, comments="", fmt="%.17g")

    def tamper(site, data, service):
        reply = service(data)
        found = open_message(reply, consortium.trust)
        if site == SITE and open_message(data, consortium.trust).head["kind"] == "round":
            answer = decode_answer(found.body)
            told.update({name: vector_of(answer.parts[name], 0, 0) for name in {"cost", "count"} & set(answer.parts)})
            told.update(answer.reported.get(SITE, {}))
        return reply

    run = consortium.run('method = "independent"\nalpha = 0.5\nbeta = 0.25', missing_nodes='"allow"')
    consortium.finish(run, Loopback(consortium.services(), tamper))
    every, some = 28, 21  # pairs
    guess = (6 * told["scale"] - told["cost"].sum() / every) / (1 - some / every)
    own = np.mean([cost(lacking, left, right) for left in range(7) for right in range(left)])
    assert guess != pytest.approx(own)
    assert told["scale"] == pytest.approx((told["cost"] / told["count"]).mean()), "which the sums tell, too"


def test_a_table_whose_first_rows_all_have_gaps_is_read_without_them(curious):
    table = np.random.default_rng(0).normal(size=(60, 4))
    table[:20, 1] = np.nan
    assert not isinstance(curious([table]).costs("missing = 'rows'"), str)
