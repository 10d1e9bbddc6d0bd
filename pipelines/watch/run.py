"""Running a pipeline that has no end until it is told to stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pipelines.failures import error_in
from pipelines.run import Until, run

if TYPE_CHECKING:
    from collections.abc import Callable

    import apache_beam as beam

    from pipelines.failures import Failures
    from pipelines.settings import Execution
    from pipelines.watch.keeper import Keeper


def run_until_stopped(
    build: Callable[[beam.Pipeline, Failures], None], *, execution: Execution, keeper: Keeper
) -> str:
    """Build a pipeline and run it to its end, or until it is told to stop.

    SIGINT and SIGTERM tell it; a second one is as ever.

    Args:
        build: adds the transforms to the pipeline.
        execution: where to run.
        keeper: looks after the output meanwhile, and may end the job.

    Returns:
        Why it ended: ``signal``, or what the keeper was asked for.

    Raises:
        JobError: the error that ended the job.
    """
    until = Until()
    watcher = threading.Thread(target=keeper.run, args=(until.stopping, until.stop), daemon=True)

    def begin(pipeline: beam.Pipeline, failures: Failures) -> None:
        build(pipeline, failures)
        if watcher.ident is None:
            watcher.start()

    try:
        run(begin, execution=execution, progress=keeper.progress, name="watch", until=until)
        ended_itself = not until.stopping.is_set()
    finally:
        # Nobody else may write to the directory before the keeper has ended.
        until.stopping.set()
        if watcher.ident is not None:
            watcher.join()
    if keeper.error is not None:
        raise error_in(keeper.error) from keeper.error
    if until.signalled:
        return "signal"
    return "end" if ended_itself else "asked"
