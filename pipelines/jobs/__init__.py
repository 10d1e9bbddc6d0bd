"""The jobs, as the command line and other programs call them.

Each function does a whole job and returns when its output is complete; whatever goes wrong, in
whatever worker, comes out as one `JobError` with a message of one line.
"""

from __future__ import annotations

from pipelines.checks import check_cut, check_run
from pipelines.jobs.comparing import compare
from pipelines.jobs.counting import count
from pipelines.jobs.decoding import decode
from pipelines.jobs.encoding import encode
from pipelines.jobs.training import train
from pipelines.jobs.verifying import outputs, verify
from pipelines.settings import CountSettings, CountsInput, EncodeSettings
from pipelines.summaries import CountSummary, EncodeSummary, TrainSummary, VerifySummary

__all__ = [
    "CountSettings",
    "CountSummary",
    "CountsInput",
    "EncodeSettings",
    "EncodeSummary",
    "TrainSummary",
    "VerifySummary",
    "check_cut",
    "check_run",
    "compare",
    "count",
    "decode",
    "encode",
    "outputs",
    "train",
    "verify",
]
