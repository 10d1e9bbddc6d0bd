"""Progress of a job: documents, bytes, speed and time left.

Workers of this process write the work done on each part into a slot; the driver adds the slots up
and shows the sums. For other workers, the driver shows the figures of their runner.
"""

from pipelines.progress.shown import BarProgress, LineProgress, draws_on, progress_on
from pipelines.progress.slots import SlotWriter
from pipelines.progress.steps import UNSEEN, JobLog, Progress, Snapshot, StageProgress
from pipelines.progress.text import duration, many, size_text

__all__ = [
    "UNSEEN",
    "BarProgress",
    "JobLog",
    "LineProgress",
    "Progress",
    "SlotWriter",
    "Snapshot",
    "StageProgress",
    "draws_on",
    "duration",
    "many",
    "progress_on",
    "size_text",
]
