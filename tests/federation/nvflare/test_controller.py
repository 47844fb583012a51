"""A job names runs, and whoever submits it could name something else."""

import pytest

pytest.importorskip("nvflare")

from silograph.federation.names import new_run_name
from silograph.federation.nvflare.controller import StudyController


@pytest.mark.parametrize("name", ["..", ".", "", "../ca", "a/b", "0" * 15, "0" * 17, "G" * 16, f"{'0' * 16}\n", 5])
def test_a_job_that_names_anything_but_runs_is_not_begun(name):
    with pytest.raises(ValueError, match="16 hexadecimal digits"):
        StudyController(runs=[new_run_name(), name])


def test_the_names_of_runs_as_they_are_made_are_taken():
    StudyController(runs=[new_run_name() for _ in range(100)])
