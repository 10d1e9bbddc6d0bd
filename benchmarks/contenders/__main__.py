"""Run one contender."""

from __future__ import annotations

import importlib
import json
import resource
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.contenders.report import Report


def main(module: str, name: str, *arguments: str) -> None:
    """Do the work of ``module`` as ``name`` does it; print the report."""
    check = "--check" in arguments
    rest = [argument for argument in arguments if argument != "--check"]
    found = importlib.import_module(f"benchmarks.contenders.{module}")
    report: Report = found.run(name, rest, check=check)
    if not report.peak_bytes:
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        report = replace(report, peak_bytes=peak)
    sys.stdout.write("\n" + json.dumps(asdict(report)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
