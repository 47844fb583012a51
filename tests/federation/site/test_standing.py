"""What `silograph site status` knows of a site's last run."""

import json
import os
import shutil
import time

from silograph.federation.site.standing import standing_of
from silograph.report import write_report
from testing.consortium import Consortium


def test_a_run_has_ended_when_it_ended_whatever_comes_into_its_folder_later(tmp_path):
    consortium = Consortium(tmp_path)
    run = consortium.run()
    consortium.finish(run)
    home = consortium.folder / "oslo"
    (results,) = (home / "results").iterdir()
    record = json.loads((results / "run.json").read_text())
    (results / "run.json").write_text(json.dumps(record | {"created": "2020-01-02T03:04:05+00:00"}))
    write_report(results)
    for part in ("state", "answered"):
        os.utime(home / part / results.name, (0, 0))
    last = standing_of(home, hosted=True).run
    assert (last.run, last.state, last.when) == (results.name, "ended", "2020-01-02T03:04:05+00:00")

    # A page of an older run makes it no newer one
    older = results.with_name("0" * 16 + ".1")
    shutil.copytree(results, older)
    (older / "run.json").write_text(json.dumps(record | {"created": "2019-01-02T03:04:05+00:00"}))
    os.utime(older, (time.time() + 60,) * 2)
    assert standing_of(home, hosted=True).run.run == results.name
