"""Gathers what there is, and writes the page."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bpe.errors import BpeError
from bpe.files import CHECKSUM
from bpe.training_report import Training
from pipelines import storage
from pipelines.compare.steps import read_comparison
from pipelines.count.directory import (
    group_directories,
    load_watched_counts,
    read_counts_manifest,
)
from pipelines.encode.manifest import encoded_of, read_encoded_json, watched_files
from pipelines.encode.tokenizer_files import load_tokenizer
from pipelines.errors import InputError, OutputError
from pipelines.failures import job_errors
from pipelines.output.directory import is_report
from pipelines.output.entries import is_watched_counts, read_steadily
from pipelines.output.names import REPORT, TOKENIZER
from pipelines.output.timings import read_timing
from pipelines.progress import NoProgress
from pipelines.report import charts, corpus_sections, tokenizer_sections
from pipelines.report.comparison_sections import comparison
from pipelines.report.facts import (
    counted_facts,
    read_counted_facts,
    read_encoded_facts,
    read_reasons,
    read_sample_rows,
)
from pipelines.report.html import Html, joined, page, paragraph, tiles
from pipelines.report.sources import find_sources
from pipelines.run import options
from pipelines.settings import Execution
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe import Tokenizer
    from bpe.counts.manifest import CountsManifest
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.progress import Progress
    from pipelines.report.facts import CountedFacts, EncodedFacts, SampleRow
    from pipelines.report.html import Section
    from pipelines.report.sources import Sources


@dataclass(frozen=True, kw_only=True)
class ReportSummary:
    """A report that was written.

    Attributes:
        output: the file.
        bytes: its size.
        sections: the keys of its sections.
        pictures: whether it has pictures, or tables in their place.
        seconds: it took.
    """

    output: str
    bytes: int
    sections: tuple[str, ...]
    pictures: bool
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return asdict(self)


@dataclass(kw_only=True)
class _Material:
    """All that the report is about, as far as it is there."""

    sources: Sources
    tokenizer: Tokenizer | None = None
    training: Training | None = None
    counts: CountsManifest | None = None
    counted: CountedFacts | None = None
    counts_are_watched: bool = False
    counts_are_many: bool = False
    manifest: EncodedManifest | None = None
    manifest_json: dict[str, Any] | None = None
    encoded: EncodedFacts | None = None
    samples: Sequence[SampleRow] = ()

    @property
    def is_sampled(self) -> bool:
        """Whether some parts of the encoded corpus were not read."""
        if self.manifest is None or self.encoded is None:
            return False
        return self.encoded.parts < len(self.manifest.parts)

    @property
    def watched(self) -> list[str]:
        """The steps that take files as they arrive."""
        encoding = self.manifest is not None and self.manifest.watched
        steps = (("count", self.counts_are_watched), ("encode", encoding))
        return [step for step, is_watched in steps if is_watched]


def report(
    path: str,
    *,
    output: str | None = None,
    overwrite: bool = False,
    tokenizer: Tokenizer | None = None,
    sample_parts: int | None = None,
    comparisons: Sequence[str] = (),
    more: Sequence[Section] = (),
    progress: Progress | None = None,
) -> ReportSummary:
    """Write one HTML file about what a directory holds.

    Args:
        path: a directory that a job has written, a tokenizer file, or one that
            ``bpe compare --output`` has written; of any filesystem.
        output: the file; by default ``report.html`` in the directory.
        overwrite: replace a file that is no report of ours.
        tokenizer: the one that ``path`` is the file of, where it is loaded already.
        sample_parts: parts of an encoded corpus to read at most, evenly spread; the report says so.
        comparisons: files that ``bpe compare --output`` has written, to show too.
        more: sections to show before the manifests.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    with job_errors():
        options(Execution())
        sources = find_sources(path)
        target = _target(output, sources, overwrite=overwrite)
        progress = progress or NoProgress()
        material = _gather(sources, tokenizer, sample_parts, progress)
        paths = [*filter(None, [sources.comparison]), *comparisons]
        with progress.stage("page", None):
            compared = [
                _comparison(storage.located(one), number) for number, one in enumerate(paths, 1)
            ]
            sections = _sections(material, [*compared, *more])
            text = page(
                title=f"Report on {_named(path, sources)}",
                head=_head(material),
                sections=sections,
            ).encode("utf-8")
        storage.write(target, text)
    return ReportSummary(
        output=target,
        bytes=len(text),
        sections=tuple(one.key for one in sections),
        pictures=charts.has_matplotlib(),
        seconds=time.monotonic() - began,
    )


def _named(path: str, sources: Sources) -> str:
    """What was typed, unless that says nothing, such as a dot."""
    typed = path.rstrip("/")
    return typed if typed.strip("./") else sources.directory.rpartition("/")[2]


def _target(output: str | None, sources: Sources, *, overwrite: bool) -> str:
    target = join(sources.directory, REPORT) if output is None else storage.located(output)
    if not overwrite and storage.exists(target) and not is_report(target):
        raise OutputError(
            f"{target} is there already, and is no report of bpe: name another file with "
            "`output`, or replace it with `overwrite`"
        )
    return target


def _comparison(path: str, number: int) -> Section:
    result = read_comparison(path)
    try:
        return comparison(result, number=number)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: damaged: {type(error).__name__}: {error}: make it again with bpe compare"
        ) from error


def _gather(
    sources: Sources, tokenizer: Tokenizer | None, sample_parts: int | None, progress: Progress
) -> _Material:
    material = _Material(sources=sources, tokenizer=tokenizer)
    if material.tokenizer is None and sources.tokenizer is not None:
        material.tokenizer = load_tokenizer(sources.tokenizer)
    if sources.training is not None:
        material.training = _training(sources.training)
        if material.tokenizer is not None:
            material.tokenizer = material.tokenizer.with_training(material.training)
    if sources.counts is not None:
        _gather_counts(material, sources.counts, progress)
        _check_runs(material, sources.counts)
    if sources.encoded is not None:
        _gather_encoded(material, sources.encoded, sample_parts, progress)
    return material


def _gather_counts(material: _Material, directory: str, progress: Progress) -> None:
    with progress.stage("counts", None, unit="parts") as stage:
        material.counts_are_watched = is_watched_counts(directory)
        # One pre-token may be in each set of these.
        material.counts_are_many = material.counts_are_watched or bool(group_directories(directory))
        if material.counts_are_many:
            material.counts, counts = load_watched_counts(directory)
            material.counted = counted_facts(counts)
            return
        material.counts = read_counts_manifest(directory)
        material.counted = read_counted_facts(directory, material.counts, advance=stage.advance)


def _check_runs(material: _Material, directory: str) -> None:
    """Refuse counts of runs of another tokenizer: their keys are its ids.

    Raises:
        InputError: the tokenizer is missing, or another one.
    """
    runs = None if material.counts is None else material.counts.runs
    if runs is None:
        return
    if material.tokenizer is None or material.tokenizer.text_sha256 != runs.tokenizer:
        raise InputError(
            f"{join(directory, TOKENIZER)} is missing, or not the tokenizer whose runs are counted "
            "there: put that one back, or count the runs again"
        )


def _gather_encoded(
    material: _Material, directory: str, sample_parts: int | None, progress: Progress
) -> None:
    tokenizer = material.tokenizer

    def manifest() -> tuple[dict[str, Any], EncodedManifest]:
        value = read_encoded_json(directory)
        return value, encoded_of(value, directory)

    def read(
        manifests: tuple[dict[str, Any], EncodedManifest],
    ) -> tuple[dict[str, Any], EncodedManifest, EncodedFacts, list[SampleRow]]:
        if tokenizer is None:
            raise InputError(f"{directory}: no tokenizer.json beside the manifest")
        if tokenizer.sha256 != manifests[1].tokenizer.sha256:
            raise InputError(
                f"{directory} was encoded with another tokenizer than "
                f"{material.sources.tokenizer}: report on it alone, or encode again"
            )
        facts = read_encoded_facts(
            directory, manifests[1], sample_parts=sample_parts, advance=stage.advance
        )
        samples = read_sample_rows(directory, manifests[1], sample_parts=sample_parts)
        return (*manifests, facts, samples)

    with progress.stage("token ids", None, unit="parts") as stage:
        (material.manifest_json, material.manifest, material.encoded, material.samples) = (
            read_steadily(manifest, lambda manifests: watched_files(manifests[1]), read)
        )


def _training(path: str) -> Training:
    try:
        return Training.read(storage.read(path), where=path)
    except BpeError as error:
        raise InputError(str(error)) from error


def _head(material: _Material) -> Html:
    """What it is about, in a sentence and a few numbers."""
    facts: list[tuple[str, object]] = []
    tokenizer, training, counts = material.tokenizer, material.training, material.counts
    if tokenizer is not None:
        facts += [("tokens in the vocabulary", len(tokenizer))]
    if training is not None and training.tokens:
        what = "bytes per token, training"
        if training.superwords is not None and training.bytes_per_token is None:
            what += " of words"
        facts += [(what, f"{training.curve()[-1].bytes_per_token:.2f}")]
    if counts is not None:
        facts += [
            ("documents counted", counts.totals.documents),
            ("bytes counted", counts.totals.bytes),
            (
                "distinct pre-tokens" if counts.runs is None else "distinct runs",
                material.counted.distinct if material.counted else 0,
            ),
        ]
    if material.manifest is not None:
        totals = material.manifest.totals
        facts += [("documents encoded", totals.documents), ("tokens encoded", totals.tokens)]
        if totals.tokens:
            ratio = totals.text_bytes / totals.tokens
            facts += [("bytes per token, corpus", f"{ratio:.2f}")]
        if totals.unknown:
            facts += [("unknown tokens", totals.unknown)]
    what = (
        "Language models read numbers, not text. A tokenizer cuts text into pieces, its tokens, "
        "and gives each a number. This page shows one that was made by byte-pair encoding: "
        "beginning with single characters or bytes, the two neighbours that stood together most "
        "often in a large text were joined into a new token, again and again."
        if tokenizer is not None
        else "How often each piece of a corpus occurs: all that is needed to train a tokenizer."
        if counts is not None
        else "Language models read numbers, not text. A tokenizer cuts text into pieces, its "
        "tokens, and gives each a number. This page shows what several make of the same text."
    )
    notes = []
    if not charts.has_matplotlib():
        notes.append(
            Html(
                '<p class="warning">The pictures are missing: they need matplotlib. Install it '
                "with <code>pip install matplotlib</code> and write the report again. The tables "
                "have the same figures.</p>"
            )
        )
    if material.is_sampled and material.encoded and material.manifest:
        notes.append(
            paragraph(
                f"What is said of tokens and rows is of {material.encoded.parts:,} of "
                f"{len(material.manifest.parts):,} parts of the encoded corpus, evenly spread."
            )
        )
    shown = [tiles(facts)] if facts else []
    return joined(Html(f'<p class="explanation">{what}</p>'), *notes, *shown)


def _sections(material: _Material, more: Sequence[Section]) -> list[Section]:
    facts = material.encoded
    sections: list[Section | None] = []
    if material.training is not None:
        sections.append(tokenizer_sections.compression(material.training))
        if material.training.superwords is not None and material.tokenizer is not None:
            sections.append(
                tokenizer_sections.superwords(material.training, facts, material.tokenizer)
            )
    if material.tokenizer is not None:
        sections.append(tokenizer_sections.lengths(material.tokenizer, facts))
        if facts is not None:
            sections.append(
                tokenizer_sections.frequencies(
                    material.tokenizer, facts, sampled=material.is_sampled
                )
            )
        sections.append(tokenizer_sections.kinds(material.tokenizer, facts))
    if material.manifest is not None and facts is not None:
        sections.append(corpus_sections.sources(material.manifest))
        sections.append(
            corpus_sections.document_lengths(material.manifest, facts, sampled=material.is_sampled)
        )
        if material.tokenizer is not None:
            sections.append(
                corpus_sections.sample_rows(material.manifest, material.samples, material.tokenizer)
            )
    if material.counts is not None and material.counted is not None:
        sections.append(
            corpus_sections.counted(material.counts, material.counted, material.tokenizer)
        )
        if material.counts.runs is None:
            sections.append(corpus_sections.pretoken_kinds(material.counted))
    if material.training is not None and material.training.merges:
        sections.append(tokenizer_sections.merge_counts(material.training))
        sections.append(tokenizer_sections.ties(material.training))
        if material.training.parity is not None:
            sections.append(tokenizer_sections.parity(material.training.parity))
    if material.tokenizer is not None:
        sections.append(tokenizer_sections.special(material.tokenizer))
    sections += more
    sections += [_dead_letters(material), _throughput(material)]
    if material.counts is not None and material.counted is not None:
        value = json.loads(material.counts.to_json())
        if material.counts_are_many:
            del value[CHECKSUM]  # no file holds all of it
            value["totals"]["distinct_pretokens"] = material.counted.distinct
        sections.append(
            corpus_sections.manifest("counts", value, watched=material.counts_are_watched)
        )
    if material.manifest is not None and material.manifest_json is not None:
        sections.append(
            corpus_sections.manifest(
                "corpus", material.manifest_json, watched=material.manifest.watched
            )
        )
    return [one for one in sections if one is not None]


def _dead_letters(material: _Material) -> Section | None:
    failures = {
        "count": material.counts.totals.failures if material.counts else 0,
        "encode": material.manifest.totals.failures if material.manifest else 0,
    }
    places = {"count": material.sources.counts, "encode": material.sources.encoded}
    letters = [
        (stage, failures[stage], read_reasons(directory))
        for stage, directory in places.items()
        if directory is not None and failures[stage]
    ]
    return corpus_sections.dead_letters(letters)


def _throughput(material: _Material) -> Section | None:
    sources = material.sources
    places = {
        "count": sources.counts,
        "train": sources.directory if material.training is not None else None,
        "encode": sources.encoded,
    }
    timings = {stage: read_timing(place) for stage, place in places.items() if place is not None}
    if not timings:
        return None
    return corpus_sections.throughput(
        [one for one in timings.values() if one is not None],
        [stage for stage, one in timings.items() if one is None and stage not in material.watched],
        material.watched,
    )
