"""Messages of a command while its job runs elsewhere."""

from __future__ import annotations

import sys

import pytest

from tests.cli.process import execute

CODE = """
import logging, sys, warnings
from pipelines.cli import logs
logs.use_format(sys.argv[1])
logs.set_up_logging()
from pipelines.submission.log import job_log
with job_log() as log:
    logging.getLogger("pipelines.count").warning("ours")
    logging.getLogger("apache_beam").error("of Beam")
    logging.getLogger("apache_beam.runners").info("the state changed")
    logging.getLogger("pipelines.count").info("no news")
    warnings.warn_explicit("of a library", UserWarning, "/elsewhere/library.py", 1)
    print("a traceback", file=sys.stderr)
    print(len(log.texts), "error")
    log.keep()
logging.getLogger("apache_beam").info("the end")
from pathlib import Path
print(Path(log.path).read_text())
Path(log.path).unlink()
print("afterwards", file=sys.stderr)
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_warnings_of_this_package_reach_the_user(form: str) -> None:
    done = execute(sys.executable, "-c", CODE, form)
    for said in ("ours", "of Beam", "the state changed", "a traceback", "1 error"):
        assert said in done.stdout
    assert "the end" not in done.stdout
    lines = done.stderr.splitlines()
    assert lines[-1] == "afterwards"
    if form == "text":
        assert lines[:-1] == ["bpe: WARNING: ours"]
    else:
        assert [line.count("WARNING") for line in lines[:-1]] == [1]
        assert '"ours"' in lines[0]


CANCELLED = """
import logging, sys
from pipelines.cli import logs
logs.set_up_logging()
from pipelines.errors import Interrupted
from pipelines.submission.log import job_log
try:
    with job_log():
        raise Interrupted("terminated", exit_status=143)
except Interrupted as error:
    print("a traceback", file=sys.stderr)
    logging.getLogger("apache_beam").error("of Beam")
    print(error)
"""


def test_what_workers_say_after_a_signal_is_kept_from_the_user() -> None:
    done = execute(sys.executable, "-c", CANCELLED)
    assert (done.stdout, done.stderr) == ("terminated\n", "")
