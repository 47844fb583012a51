"""What `silograph federation run` tells of the sites while it waits."""

import time

from rich.progress import Progress

from silograph.cli.federation.run import Watch
from silograph.federation.coordinator.history import History
from silograph.federation.coordinator.run import CoordinatorRun


def test_a_site_that_waited_in_an_earlier_attempt_is_not_said_to_wait_now(tmp_path):
    run = CoordinatorRun(folder=tmp_path, name="1", nodes=(), sites=("oslo", "lima"), left_out={}, generation=1)
    said: list[str] = []
    with History(run.history) as history, Progress(disable=True) as progress:
        history.see_site("oslo", state="unapproved", note="waits for approval")
        time.sleep(0.01)
        watch = Watch(progress=progress, task=progress.add_task(""), say=said.append)
        watch.look(run)
        assert said == []
        history.see_site("oslo", state="unapproved", note="waits for approval")
        watch.looked = 0.0
        watch.look(run)
    assert said == ["oslo: waits for approval."]
