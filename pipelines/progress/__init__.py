"""Progress of a job: documents, bytes, speed and time left.

Workers of this process write the work done on each part into a slot; the driver adds the slots up
and shows the sums. For other workers, the driver shows the figures of their runner.
"""

from pipelines.progress.shown import BarProgress as BarProgress
from pipelines.progress.shown import LineProgress as LineProgress
from pipelines.progress.shown import draws_on as draws_on
from pipelines.progress.shown import progress_on as progress_on
from pipelines.progress.steps import UNSEEN as UNSEEN
from pipelines.progress.steps import Progress as Progress
from pipelines.progress.steps import SlotWriter as SlotWriter
from pipelines.progress.steps import Snapshot as Snapshot
from pipelines.progress.steps import StageProgress as StageProgress
from pipelines.progress.text import duration as duration
from pipelines.progress.text import many as many
from pipelines.progress.text import printable as printable
from pipelines.progress.text import size_text as size_text
