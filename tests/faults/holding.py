"""Holds the lock of a directory until it is told to let go, in a process of its own.

python -m tests.faults.holding DIRECTORY [STORAGE OPTION...]

Each line of standard input is one step, answered by a line: take the lock, let it go.
"""

from __future__ import annotations

import sys

from pipelines.errors import OutputError
from pipelines.output.lock import locked
from pipelines.run import options
from pipelines.settings import Execution

if __name__ == "__main__":
    _, directory, *storage_options = sys.argv
    options(Execution(storage_options=tuple(storage_options)))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        with locked(directory):
            print("held", flush=True)
            sys.stdin.readline()
    except OutputError as error:
        print(error, flush=True)
