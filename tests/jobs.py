"""What the commands run, under one name."""

from pipelines.compare.job import compare
from pipelines.count.job import count
from pipelines.decode import decode
from pipelines.encode.job import encode
from pipelines.export.job import export
from pipelines.recipes import train
from pipelines.settings import CountSettings, CountsInput, EncodeSettings
from pipelines.summaries import CountSummary, EncodeSummary, TrainSummary, VerifySummary
from pipelines.verify.job import outputs, verify

__all__ = [
    "CountSettings",
    "CountSummary",
    "CountsInput",
    "EncodeSettings",
    "EncodeSummary",
    "TrainSummary",
    "VerifySummary",
    "compare",
    "count",
    "decode",
    "encode",
    "export",
    "outputs",
    "train",
    "verify",
]
