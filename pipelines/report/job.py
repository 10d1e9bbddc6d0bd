"""Write the report on the contents of a directory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jinja2

from pipelines import storage
from pipelines.compare.result import read_comparison
from pipelines.errors import InputError, OutputError
from pipelines.failures import job_errors
from pipelines.output.names import REPORT, read_plan
from pipelines.progress import UNSEEN
from pipelines.report import charts, corpus_sections, job_sections, tokenizer_sections
from pipelines.report.material import find_sources, gather
from pipelines.report.page import page, section
from pipelines.run import options
from pipelines.settings import Execution
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinja2.environment import TemplateModule

    from bpe import Tokenizer
    from pipelines.progress import Progress
    from pipelines.report.page import Facts

# In their order: a template, or the function of one. Comparisons come between the two.
_OF_TOKENIZER_AND_CORPUS: tuple[Callable[..., Facts | None] | str, ...] = (
    tokenizer_sections.compression,
    tokenizer_sections.superwords,
    tokenizer_sections.lengths,
    tokenizer_sections.frequencies,
    tokenizer_sections.scripts,
    "sources",
    corpus_sections.tokens_per_document,
    corpus_sections.samples,
    corpus_sections.counted,
    "text-scripts",
    "export",
    tokenizer_sections.merges,
    tokenizer_sections.ties,
    "parity",
    "special",
)
_OF_JOBS: tuple[Callable[..., Facts | None] | str, ...] = (
    job_sections.dead_letters,
    job_sections.throughput,
    job_sections.counts_manifest,
    job_sections.encoded_manifest,
    job_sections.export_manifest,
)


@dataclass(frozen=True, kw_only=True)
class ReportSummary:
    """A report that was written.

    Attributes:
        output: the file.
        bytes: its size.
        sections: the keys of its sections.
        pictures: whether it has pictures, or tables in their place.
        seconds: the duration of the job.
    """

    output: str
    bytes: int
    sections: tuple[str, ...]
    pictures: bool
    seconds: float


def report(
    path: str,
    *,
    output: str | None = None,
    overwrite: bool = False,
    tokenizer: Tokenizer | None = None,
    comparisons: Sequence[str] = (),
    progress: Progress = UNSEEN,
) -> ReportSummary:
    """Write one HTML file about the contents of a directory.

    Args:
        path: a directory that a job has written, a tokenizer file, or one that
            ``bpe compare --output`` has written; of any filesystem.
        output: the file; by default ``report.html`` in the directory.
        overwrite: replace a file that is no report of ours.
        tokenizer: the one that ``path`` is the file of, where it is loaded already.
        comparisons: files that ``bpe compare --output`` has written, to show too.
        progress: the display of the progress.

    Raises:
        JobError: the report cannot be made; the class of the error says why.
    """
    began = time.monotonic()
    with job_errors():
        options(Execution())
        sources = find_sources(path)
        directory = sources["directory"]
        target = _target(output, directory, overwrite=overwrite)
        material = gather(sources, tokenizer, progress)
        compared = [sources["comparison"]] if "comparison" in sources else []
        compared += map(storage.located, comparisons)
        with progress.stage("page", None):
            every = [
                *(section(one, **vars(material)) for one in _OF_TOKENIZER_AND_CORPUS),
                *(_comparison(file, number) for number, file in enumerate(compared, 1)),
                *(section(one, **vars(material)) for one in _OF_JOBS),
            ]
            sections = [one for one in every if one is not None]
            title = f"Report on {_named(path, directory)}"
            pictures = charts.has_matplotlib()
            text = page(title=title, sections=sections, material=material, pictures=pictures)
            data = text.encode()
        storage.write(target, data)
    return ReportSummary(
        output=target,
        bytes=len(data),
        sections=tuple(vars(one)["key"] for one in sections),
        pictures=pictures,
        seconds=time.monotonic() - began,
    )


def _comparison(path: str, number: int) -> TemplateModule | None:
    """Return the section of a comparison of the page, from 1.

    Raises:
        InputError: the file is damaged.
    """
    result = read_comparison(path)
    try:
        return section("comparison", number=number, **result)
    except (LookupError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        raise InputError(
            f"{path}: damaged: {type(error).__name__}: {error}: make it again with bpe compare"
        ) from error


def _named(path: str, directory: str) -> str:
    """Return the path as typed, or a longer one where that says nothing, such as a dot."""
    typed = path.rstrip("/")
    return typed if typed.strip("./") else directory.rpartition("/")[2]


def _target(output: str | None, directory: str, *, overwrite: bool) -> str:
    target = join(directory, REPORT) if output is None else storage.located(output)
    ours = output is None and bool(read_plan(directory))  # by its name, as all there is
    if not (overwrite or ours) and storage.exists(target):
        raise OutputError(
            f"{target} is there already: name another file with `output`, or replace it with "
            "`overwrite`"
        )
    return target
