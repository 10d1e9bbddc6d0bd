"""Processes that tests start end with the tests, however those end."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import ROOT
from tests.cluster.processes import is_running, wait_until

if TYPE_CHECKING:
    from pathlib import Path

# A program whose child has left its group and its session, as Beam's boot program does it.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
with open("child.tmp", "w") as file:
    file.write(str(child.pid))
__import__("os").rename("child.tmp", "child")
time.sleep(600)
"""
DRIVER = """
import sys, time
from pathlib import Path
from tests.cluster.processes import Program
Program("parent", [sys.executable, "-c", sys.argv[1]], folder=Path(sys.argv[2]))
time.sleep(600)
"""


def child_in(folder: Path) -> int:
    path = folder / "child"
    wait_until(path.exists, "a child")
    return int(path.read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="children that leave are found on Linux only")
def test_everything_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRIVER, PARENT, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as driver:
        child = child_in(tmp_path)
        assert is_running(child)
        driver.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_running(child), "the end of the child")
