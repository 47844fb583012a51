"""Messages name a setting as their readers write it."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from silograph._util.naming import SITE_KEYS, as_join_option, as_key, as_option, as_parameter, naming, setting
from silograph.federation.site.settings import SECTIONS


@pytest.mark.parametrize(
    ("way", "named"),
    [
        (as_parameter, ("drop=['my age']", "missing='rows'", "force=True", "masked=False", "keep_rows")),
        (as_option, ("--drop 'my age'", "--missing rows", "--force", "--open-sums", "--keep-rows")),
        (
            as_key,
            (
                'drop = ["my age"] in site.toml',
                'missing = "rows" in the study: ask the coordinator',
                "force = true in the study: ask the coordinator",
                "masked = false in the study: ask the coordinator",
                "keep_rows in site.toml",
            ),
        ),
    ],
)
def test_one_setting_is_named_in_the_words_of_each_reader(way, named):
    asked = (("drop", ["my age"]), ("missing", "rows"), ("force", True), ("masked", False), ("keep_rows", None))
    with naming(way):
        assert tuple(setting(name, value) for name, value in asked) == named


def test_who_joins_has_options_only_for_what_join_can_be_told():
    with naming(as_join_option):
        assert setting("drop", ["age", "site"]) == "--drop age --drop site"
        assert setting("keep_rows", "good") == 'keep_rows = "good" in site.toml'


def test_what_a_site_reads_by_is_in_its_own_file():
    assert set(SITE_KEYS) < set(SECTIONS["table"])


def test_a_name_from_a_table_can_be_pasted_into_a_shell():
    with naming(as_option):
        assert shlex.split(setting("drop", ["$(reboot); 'x'"])) == ["--drop", "$(reboot); 'x'"]


def test_python_is_the_way_outside_and_afterwards_also_after_an_error():
    with pytest.raises(ZeroDivisionError), naming(as_option):
        1 / 0  # noqa: B018
    assert setting("force", True) == "force=True"


def test_two_at_once_each_keep_their_own_way():
    both = Barrier(2)

    def name(way):
        with naming(way):
            both.wait(10)
            told = setting("drop", ["a"])
            both.wait(10)
        return told, setting("drop", ["a"])

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(name, (as_option, as_key))
    assert one == ("--drop a", "drop=['a']")
    assert other == ('drop = ["a"] in site.toml', "drop=['a']")
