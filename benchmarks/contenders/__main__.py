"""Run one contender."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from benchmarks.contenders.memory import peak_memory

if TYPE_CHECKING:
    from benchmarks.contenders.report import Report


def main(mode: str, module: str, name: str, *arguments: str) -> None:
    """Do the work of ``module`` as ``name`` does it; print the report."""
    work = importlib.import_module(f"benchmarks.contenders.{module}")
    if mode == "prepare":
        work.prepare(arguments)
        return
    report: Report = work.run(name, arguments, check=mode == "check")
    if mode == "check" and "memory" not in report.measures:
        report = replace(report, measures=report.measures | {"memory": peak_memory()})
    sys.stdout.write("\n" + json.dumps(asdict(report)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
