"""Progress of a job: documents, bytes, speed and time left.

Workers (threads or processes of this machine) write what they have done of each part into a small
file of slots; the driver adds the slots up, and shows what they come to.
"""

from pipelines.progress.shown import BarProgress, LineProgress, draws_on, progress_on
from pipelines.progress.slots import SlotWriter
from pipelines.progress.steps import JobLog, NoProgress, Progress, Snapshot, StageProgress
from pipelines.progress.text import duration, many, size_text

__all__ = [
    "BarProgress",
    "JobLog",
    "LineProgress",
    "NoProgress",
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
