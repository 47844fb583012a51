import pytest
from numba.core.event import trigger_event

from silograph.cli.progress import COMPILING, showing_progress


@pytest.mark.parametrize("shown", [True, False])
def test_a_terminal_is_told_once_that_loops_are_compiled(shown, capsys):
    with showing_progress(shown):
        for _ in range(2):
            with trigger_event("numba:compile"):
                pass
    with trigger_event("numba:compile"):  # nobody is waiting any more
        pass
    assert capsys.readouterr().err.count(COMPILING) == shown
