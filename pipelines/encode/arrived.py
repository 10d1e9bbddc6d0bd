"""Encode arriving files; unreadable files are set aside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe._codec import from_jsonable, to_jsonable
from pipelines.corpus.documents import PassthroughColumn
from pipelines.corpus.files import check_columns
from pipelines.encode.passthrough import find_passthrough, name_and_type
from pipelines.encode.steps import encode_split
from pipelines.output.names import read_plan
from pipelines.readable import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.files import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.encode.drift import Gauge
    from pipelines.encode.steps import EncodeJob
    from pipelines.progress import SlotWriter
    from pipelines.settings import EncodeSettings
    from pipelines.stage.stage import Made


def encode_arrived(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    stopped: Callable[[], bool],
    *,
    gauge: Gauge,
    slot: SlotWriter | None = None,
) -> Made:
    """Encode the readable files of a split.

    The totals list the files set aside, and the measured fit of the tokenizer. Arguments and
    errors are those of `encode_split`; ``gauge`` measures the fit.
    """

    def made(some: Split) -> Made:
        for column in job.settings.keep:
            check_columns(some.pieces, f"`keep` {column.name}")
        measure = gauge.measure()
        part = encode_split(
            *(some, job, tokenizer, stopped),
            observe=lambda block: measure.add(block.texts, block.plain.flatten().to_numpy()),
            slot=slot,
        )
        return replace(part, totals={**part.totals, "measured": to_jsonable(measure.finish())})

    part, aside = readable(split, made, directory=job.directory, stopped=stopped)
    return replace(part, totals={**part.totals, "set_aside": to_jsonable(aside)})


def settled_columns(
    directory: str, files: Sequence[InputFile], encoding: EncodeSettings, *, begins: bool
) -> tuple[PassthroughColumn, ...]:
    """Return the columns that pass through, with the types that the first job gave them.

    Args:
        directory: the directory of the output.
        files: the input files, from which types that are not given are found.
        encoding: the settings that name the columns.
        begins: whether this is the first job.

    Raises:
        ConfigError, InputError: the errors of `find_passthrough`.
    """
    given = dict(map(name_and_type, encoding.keep))
    if not begins:
        then = from_jsonable(
            tuple[PassthroughColumn, ...], read_plan(directory).get("settings", {}).get("keep", [])
        )
        if [column.name for column in then] == list(given) and all(
            given[column.name] in (None, column.field.type) for column in then
        ):
            return then
    if all(kind is not None for kind in given.values()):  # whatever files there are
        return find_passthrough((), encoding)
    return find_passthrough(files, encoding)
