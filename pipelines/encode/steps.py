"""Encoding documents, without Beam: what the steps of `pipelines.encode.transform` do."""

from __future__ import annotations

import hashlib
import tempfile
import uuid
import zlib
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpe.errors import EncodingError
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.inputs import describe_inputs, find_inputs
from pipelines.corpus.planned import (
    absolute,
    changed_inputs,
    parts_with,
    plan_of_run,
    read_splits,
    write_splits,
)
from pipelines.corpus.reading import Reading, SplitReader, check_failures, text_bytes
from pipelines.corpus.splits import plan_splits
from pipelines.encode.encoder import SplitEncoder
from pipelines.encode.kept import find_kept
from pipelines.encode.manifest import EncodedManifest
from pipelines.encode.parts import FinishedPart, PartWriter
from pipelines.encode.rows import RowLayout, row_maker
from pipelines.encode.tokenizer_files import load_tokenizer, sent_tokenizer, tokenizer_json
from pipelines.errors import ConfigError, JobError
from pipelines.metrics import counter
from pipelines.output.directory import prepare, remove_temporaries
from pipelines.output.names import MANIFEST, TOKENIZER, Plan, fingerprint, json_bytes, part_file
from pipelines.settings import EncodeSettings, RowSettings
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.documents import KeptColumn
    from pipelines.corpus.inputs import InputFile, PassedOver
    from pipelines.corpus.splits import Split
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.failures import Failures
    from pipelines.settings import InputSettings, OutputSettings

# Of a part: another number makes parts of an earlier release be written again. Verifying goes by
# it too, so it changes together with the version of the manifest.
LAYOUT = 4


def part_settings(
    *, tokenizer_sha256: str, id_type: str, reading: ReadOptions, rows: RowSettings
) -> dict[str, Any]:
    """What the bytes of every part depend on, beside its split; JSON values."""
    return {
        "layout": LAYOUT,
        "tokenizer": tokenizer_sha256,
        "id_type": id_type,
        **reading.to_json(),
        **rows.to_json(),
    }


def row_layout(
    rows: RowSettings, *, id_type: str, reading: ReadOptions, tokenizer: Tokenizer
) -> RowLayout:
    """What the rows of an encoded corpus look like.

    Raises:
        ConfigError: a token to put at the ends of documents is none of the tokenizer's.
    """
    check_special_tokens(tuple(tokenizer.special_tokens), rows)
    kept = tuple(column.field for column in reading.keep)
    return RowLayout.of(rows, id_type=id_type, kept=kept, special_tokens=tokenizer.special_tokens)


def part_fingerprint(split: Split, settings: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of what the bytes of a split's part depend on."""
    pieces = [asdict(piece) for piece in split.pieces]
    for piece in pieces:
        del piece["path"], piece["version"]  # where a corpus lies, and since when, do not matter
    return fingerprint([split.part, split.parts, pieces, dict(settings)])


@dataclass(frozen=True, kw_only=True)
class EncodeJob:
    """Everything a worker must know to encode a split; small, and picklable.

    Attributes:
        reading: how splits are read, and the output directory.
        tokenizer_sha256: of ``tokenizer.json`` in the output directory (hex).
        vocab_size: one more than the greatest id.
        id_type: ``uint16`` or ``uint32``.
        rows: how documents become rows.
        parts: number of splits.
        run: the id of the job's run, where it has one.
    """

    reading: Reading
    tokenizer_sha256: str
    vocab_size: int
    id_type: str
    rows: RowSettings
    parts: int
    run: str = ""

    @property
    def directory(self) -> str:
        """The output directory."""
        return self.reading.directory

    @property
    def settings(self) -> dict[str, Any]:
        """What the bytes of every part depend on, beside its split; JSON values."""
        return part_settings(
            tokenizer_sha256=self.tokenizer_sha256,
            id_type=self.id_type,
            reading=self.reading.options,
            rows=self.rows,
        )

    def fingerprint(self, split: Split) -> str:
        """SHA-256 (hex) of what the bytes of a split's part depend on."""
        return part_fingerprint(split, self.settings)


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """A job, planned.

    Attributes:
        job: for the workers.
        tokenizer_json: the tokenizer, as it goes to the workers.
        files: the inputs.
        passed_over: what else the patterns match.
        splits: the work.
        plan: what the job is, for its output directory.
        not_applied: what the tokenizer's file asks for that is left out.
    """

    job: EncodeJob
    tokenizer_json: str
    files: tuple[InputFile, ...]
    passed_over: tuple[PassedOver, ...]
    splits: tuple[Split, ...]
    plan: Plan
    not_applied: tuple[str, ...]

    def changed(self) -> list[InputFile]:
        """The inputs that changed since an earlier run of this job: their parts are made again."""
        indexes = changed_inputs(self.job.directory, self.files)
        return [self.files[index] for index in indexes]


@dataclass(frozen=True, kw_only=True)
class EncodeRequest:
    """What an encoding carries in its graph: patterns and settings, no files.

    Attributes:
        inputs: the corpus.
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it.
        tokenizer_json: the tokenizer itself, deflated, where workers may not see that file.
        output: the directory.
        encoding: what the rows hold.
        run: the id of this run of the job, once it has one (`started`): who finds it in the
            directory is of the same run.
        counters_path: the file of progress slots on this machine; None where nobody watches.
    """

    inputs: InputSettings
    tokenizer: str
    output: OutputSettings
    encoding: EncodeSettings
    tokenizer_json: bytes = b""
    run: str = ""
    counters_path: str | None = None

    @classmethod
    def of(
        cls,
        *,
        inputs: InputSettings,
        tokenizer: str | Tokenizer,
        output: OutputSettings,
        encoding: EncodeSettings,
    ) -> EncodeRequest:
        """A request that means the same in every process, whatever its working directory.

        Raises:
            ConfigError: the filesystem of the output cannot be used here.
            InputError: no tokenizer.json holds the tokenizer.
        """
        sent = b""
        if not isinstance(tokenizer, str):
            sent = zlib.compress(tokenizer_json(tokenizer, "the tokenizer").encode())
        return cls(
            inputs=replace(inputs, patterns=tuple(map(absolute, inputs.patterns))),
            tokenizer=absolute(tokenizer) if isinstance(tokenizer, str) else "",
            tokenizer_json=sent,
            output=replace(output, directory=storage.located(output.directory)),
            encoding=encoding,
        )

    def started(self) -> EncodeRequest:
        """The request of one run, with an id."""
        return self if self.run else replace(self, run=uuid.uuid4().hex)

    def load(self) -> Tokenizer:
        """The tokenizer.

        Raises:
            InputError: it cannot be read.
        """
        if not self.tokenizer_json:
            return load_tokenizer(self.tokenizer)
        with tempfile.TemporaryDirectory(prefix="bpe-tokenizer-") as folder:
            path = Path(folder, TOKENIZER)
            path.write_bytes(zlib.decompress(self.tokenizer_json))
            return load_tokenizer(str(path))


def begin_encoding(request: EncodeRequest) -> list[Split]:
    """Plan a job, prepare its directory, and return its splits.

    Where the directory holds the splits of this run, the runner has started the job anew: they
    are returned, and nothing is listed, refused or removed.

    Raises:
        JobError: the job cannot be done; the class says why.
    """
    directory = request.output.directory
    if (splits := read_splits(directory, request.run)) is not None:
        return splits
    tokenizer = request.load()
    encoding = plan_encoding(
        inputs=request.inputs,
        tokenizer=tokenizer,
        name=request.tokenizer or "the tokenizer",
        output=request.output,
        encoding=request.encoding,
        run=request.run,
    )

    def outdated() -> list[str]:
        return parts_with(encoding.splits, changed_inputs(directory, encoding.files))

    reads = [file.path for file in encoding.files]
    reads += [request.tokenizer] if request.tokenizer else []
    prepare(request.output, encoding.plan, reads=reads, outdated=outdated)
    storage.write(join(directory, TOKENIZER), encoding.tokenizer_json.encode("utf-8"))
    write_splits(directory, request.run, encoding.splits)
    return list(encoding.splits)


def job_of(request: EncodeRequest) -> EncodeJob:
    """The job that the first step has planned, in a worker.

    Raises:
        OutputError: another job has taken the directory over.
    """
    plan = plan_of_run(request.output.directory, request.run)
    settings = plan["settings"]
    return EncodeJob(
        reading=Reading(
            directory=request.output.directory,
            options=ReadOptions.from_json(_fields(ReadOptions, settings)),
            max_failures=request.inputs.max_failures,
            counters_path=request.counters_path,
        ),
        tokenizer_sha256=settings["tokenizer"],
        vocab_size=settings["vocab_size"],
        id_type=settings["id_type"],
        rows=RowSettings.from_json(_fields(RowSettings, settings)),
        parts=plan["parts"][0],
        run=request.run,
    )


def _fields(kind: type[ReadOptions | RowSettings], values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind)}


def encode_split(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    failures: Failures,
    *,
    observe: Callable[[EncodedBlock], object] | None = None,
) -> FinishedPart:
    """Read, encode and write one split.

    Args:
        split: what to read, and the part to write.
        job: how.
        tokenizer: of the job.
        failures: where the job ends.
        observe: sees each block that was encoded.

    Raises:
        RecordError: one bad record more than the job may set aside.
        InputError, OutputError: a file cannot be read or written.
    """
    layout = row_layout(
        job.rows, id_type=job.id_type, reading=job.reading.options, tokenizer=tokenizer
    )
    encoder = SplitEncoder(tokenizer, split, layout=layout)
    maker = row_maker(layout)
    with (
        replacing(join(job.directory, split.file)) as sink,
        PartWriter(sink, layout.schema, unknown=unknown_id(tokenizer)) as writer,
        SplitReader(split, job.reading, failures) as reader,
    ):
        size = count = 0
        for block in reader:
            encoded = encoder.encode(block)
            for bad in encoded.bad:
                reader.set_aside(bad)
            size += text_bytes(encoded.texts)
            count += len(encoded.texts)
            if observe is not None:
                observe(encoded)
            writer.add(maker.add(encoded.documents))
        writer.add(maker.finish())
        contents = writer.finish(
            fingerprint=job.fingerprint(split),
            documents=count,
            text_bytes=size,
            dropped=maker.dropped,
            dead_letters=reader.finish(),
        )
    use = encoder.cache_use
    counter("cache_hits").inc(use.hits)
    counter("cache_misses").inc(use.misses)
    return FinishedPart(split=split, contents=contents, written=sink.written())


def count_written(part: FinishedPart) -> None:
    """Tell Beam's counters of a part that was made."""
    for name, number in (
        ("documents_encoded", part.contents.documents),
        ("text_bytes_encoded", part.contents.text_bytes),
        ("rows_written", part.contents.rows),
        ("tokens_written", part.contents.tokens),
        ("unknown_tokens_written", part.contents.unknown),
        ("parquet_bytes_written", part.written.bytes),
        ("parts_written", 1),
    ):
        counter(name).inc(number)


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """The id of what has no token; None where there is no such id."""
    token = getattr(tokenizer.model, "unknown", None)  # bytes have none
    return None if token is None else tokenizer.token_id(token.encode())


def write_manifest(parts: Iterable[FinishedPart], job: EncodeJob) -> dict[str, Any]:
    """Check that all parts are there, and write the manifest.

    Raises:
        RecordError: over all parts, more bad records than the job may set aside.
        JobError: the runner lost a part.
    """
    manifest = EncodedManifest.of(
        parts,
        tokenizer_sha256=job.tokenizer_sha256,
        vocab_size=job.vocab_size,
        id_type=job.id_type,
        reading=job.reading.options,
        rows=job.rows,
    )
    check_failures(
        manifest.totals.failures,
        job.reading,
        [letters.file for letters in manifest.dead_letters],
        documents=manifest.totals.documents,
    )
    expected = [part_file(part, job.parts) for part in range(job.parts)]
    if [part.file for part in manifest.parts] != expected:
        raise JobError(
            f"the runner returned {len(manifest.parts)} parts of {job.parts}: "
            "use another runner; parts that are there can be kept with `resume`"
        )
    value = manifest.to_json()
    if job.run:
        plan_of_run(job.directory, job.run)  # of another job by now: this one ends
    remove_temporaries(job.directory)
    storage.write(join(job.directory, MANIFEST), json_bytes(value))
    return value


def plan_encoding(
    *,
    inputs: InputSettings,
    tokenizer: Tokenizer,
    output: OutputSettings,
    encoding: EncodeSettings = EncodeSettings(),  # noqa: B008  # immutable
    name: str = "the tokenizer",
    run: str = "",
) -> Encoding:
    """Find the inputs and plan the job; nothing is written.

    Args:
        inputs: the corpus.
        tokenizer: whose ids are made.
        output: the directory.
        encoding: what the rows hold.
        name: what errors call the tokenizer.
        run: the id of the job's run.

    Raises:
        InputError: there are no inputs.
        ConfigError: a setting is wrong.
    """
    check_tokens(tokenizer, encoding)
    found = find_inputs(inputs)
    files = found.files
    splits = plan_splits(files, inputs.split_size)
    text = tokenizer_json(tokenizer, name)
    job = encode_job(
        tokenizer,
        text,
        inputs=inputs,
        output=output,
        encoding=encoding,
        keep=find_kept(files, encoding),
        parts=len(splits),
    )
    return Encoding(
        job=job,
        tokenizer_json=text,
        files=files,
        passed_over=found.passed_over,
        splits=tuple(splits),
        plan=Plan(
            kind="encoded",
            parts=(len(splits),),
            settings={**job.settings, "vocab_size": job.vocab_size},
            inputs=describe_inputs(files),
            run=run,
        ),
        not_applied=tokenizer.not_applied,
    )


def encode_job(
    tokenizer: Tokenizer,
    text: str,
    *,
    inputs: InputSettings,
    output: OutputSettings,
    encoding: EncodeSettings,
    keep: tuple[KeptColumn, ...],
    parts: int,
) -> EncodeJob:
    """The job that these settings mean.

    Args:
        tokenizer: whose ids are made.
        text: its ``tokenizer.json``.
        inputs: how documents are read.
        output: the directory.
        encoding: what the rows hold.
        keep: the columns that pass through, with their types.
        parts: number of splits.

    Raises:
        ConfigError: the type of the ids that is asked for does not hold them.
    """
    return EncodeJob(
        reading=Reading.of(inputs, storage.located(output.directory), keep=keep),
        tokenizer_sha256=hashlib.sha256(text.encode()).hexdigest(),
        vocab_size=tokenizer.max_id + 1,
        id_type=id_type(tokenizer, encoding),
        rows=encoding.rows,
        parts=parts,
    )


def check_tokens(tokenizer: Tokenizer, encoding: EncodeSettings) -> None:
    """Refuse what the tokenizer does not have: tokens, a type of ids, merges to drop.

    Raises:
        ConfigError: it has no such special token, greater ids, or no merges to drop.
    """
    check_special_tokens(tuple(tokenizer.special_tokens), encoding)
    id_type(tokenizer, encoding)
    try:
        tokenizer.encode("", dropout=encoding.dropout)
    except EncodingError as error:
        raise ConfigError(f"`dropout` {encoding.dropout}: {error}") from error


def check_special_tokens(there: Sequence[str], rows: RowSettings) -> None:
    """Refuse tokens that are not among the special tokens ``there``.

    Raises:
        ConfigError: one is not.
    """
    asked = [
        ("`prepend_token`", rows.prepend_token),
        ("`append_token`", rows.append_token),
        *(("`allow_special`", name) for name in rows.allow_special if name != "all"),
    ]
    check_named_tokens([(option, token) for option, token in asked if token is not None], there)


def check_named_tokens(asked: Iterable[tuple[str, str]], there: Sequence[str]) -> None:
    """Refuse tokens, each with the option that names it, that are not special tokens.

    Raises:
        ConfigError: one is not among the special tokens ``there``.
    """
    for option, token in asked:
        if token not in there:
            has = f"has {', '.join(map(repr, there))}" if there else "has none (see bpe train)"
            raise ConfigError(
                f"{option}: {token!r} is not a special token of the tokenizer, which {has}"
            )


def id_type(tokenizer: Tokenizer, encoding: EncodeSettings) -> str:
    """The type of the ids: the one asked for, or the smallest that holds them.

    Raises:
        ConfigError: the one asked for does not hold them.
    """
    fits = tokenizer.max_id < 1 << 16
    if encoding.id_type == "uint16" and not fits:
        raise ConfigError(
            f"`id_type` uint16: the greatest id is {tokenizer.max_id}, and uint16 ends at 65535: "
            "use uint32 or auto"
        )
    if encoding.id_type == "auto":
        return "uint16" if fits else "uint32"
    return encoding.id_type


def tokenizer_of(job: EncodeJob) -> Tokenizer:
    """Load the job's tokenizer, in a worker.

    Raises:
        InputError: it cannot be read, or is another one by now.
    """
    return sent_tokenizer(join(job.directory, TOKENIZER), sha256=job.tokenizer_sha256)
