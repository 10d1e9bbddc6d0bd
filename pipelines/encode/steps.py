"""Encoding documents, without Beam: what the steps of `pipelines.encode.job` do."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bpe._codec import encode
from bpe.errors import EncodingError
from bpe.roles import ROLES
from pipelines import storage
from pipelines.corpus.documents.types import type_text
from pipelines.corpus.inputs import digest_inputs
from pipelines.corpus.mix import asked_of
from pipelines.corpus.reading import Reading, SplitReader, check_failures, text_bytes
from pipelines.corpus.splits import Split
from pipelines.encode.encoder import SplitEncoder
from pipelines.encode.manifest import EncodedManifest, Source, TokenizerFile, Totals, part_of
from pipelines.encode.parts import FinishedPart, PartWriter, ShuffledSplit
from pipelines.encode.rows import (
    KEY_FIELD,
    Dropped,
    RowLayout,
    carried_rows,
    has_keys,
    row_maker,
)
from pipelines.encode.tokenizer_files import sent_tokenizer
from pipelines.errors import ConfigError, JobError
from pipelines.metrics import counter
from pipelines.output.directory import plan_of_run, remove_temporaries
from pipelines.output.names import TOKENIZER, fingerprint, part_file, part_files
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from bpe import Roles, Tokenizer
    from bpe.counts.manifest import DeadLetters
    from pipelines.corpus.mix import Mix, MixSource
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.encode.rows import Documents
    from pipelines.failures import Failures
    from pipelines.settings import EncodeSettings, RowSettings

# The version of a part's content, in its fingerprint. Raise it, and the manifest's VERSION with it,
# when the same settings and columns make other bytes than before: `--resume` writes such parts
# again.
LAYOUT = 5
# Settings that say which documents a mix takes, and nothing of what is measured before.
CHOOSING = ("mix", "token_budget")

_Rows = TypeVar("_Rows", bound="RowSettings")


@dataclass(frozen=True, kw_only=True)
class EncodeJob:
    """Everything a worker must know to encode a split; small, and picklable.

    Attributes:
        reading: how splits are read, and the output directory.
        tokenizer_sha256: of ``tokenizer.json`` in the output directory (hex).
        vocab_size: one more than the greatest id.
        id_type: ``uint16`` or ``uint32``.
        rows: how documents become rows.
        parts: number of parts, without those for validation.
        run: the id of the job's run, where it has one.
        splits: of a corpus that is shuffled.
        inputs_sha256: of the inputs of a corpus that is shuffled (`digest_inputs`).
        shuffle_key: names the shuffle files of a verification; empty for the job itself.
        sources: of a mix.
        mix: which documents it takes; None where it takes all, or has not chosen yet.
        shuffle_directory: where its shuffle files go; empty for the output directory.
    """

    reading: Reading
    tokenizer_sha256: str
    vocab_size: int
    id_type: str
    rows: RowSettings
    parts: int
    run: str = ""
    splits: int = 0
    inputs_sha256: str = ""
    shuffle_key: str = ""
    sources: tuple[MixSource, ...] = ()
    mix: Mix | None = None
    shuffle_directory: str = ""

    @classmethod
    def of(cls, manifest: EncodedManifest, directory: str) -> EncodeJob:
        """The job that made an encoded corpus, to read or make it again; sets nothing aside."""
        return cls(
            reading=Reading(directory=directory, options=manifest.settings, sets_aside=False),
            tokenizer_sha256=manifest.tokenizer.sha256,
            vocab_size=manifest.tokenizer.vocab_size,
            id_type=manifest.id_type,
            rows=manifest.rows,
            parts=len(manifest.parts) // (2 if manifest.rows.validation else 1),
            inputs_sha256=digest_inputs(manifest.inputs) if manifest.rows.shuffles else "",
            sources=() if manifest.mix is None else manifest.mix.files,
            mix=manifest.mix,
        )

    @property
    def directory(self) -> str:
        """The output directory."""
        return self.reading.directory

    @property
    def filled(self) -> int:
        """Parts that are made of documents: all but the one that has what is left of the others."""
        return self.parts - self.rows.carries

    @property
    def measured(self) -> int:
        """Splits that are measured for a mix."""
        return self.splits if self.rows.shuffles else self.filled

    @property
    def destinations(self) -> int:
        """Parts that are made of documents, those held out for validation too."""
        return self.filled * (2 if self.rows.validation else 1)

    def destination(self, part: Split) -> int:
        """The number of a part among the `destinations`."""
        return part.part + self.filled * part.held_out

    def is_carried(self, file: str) -> bool:
        """Whether a part is the one that has what is left of the others."""
        last = self.parts - 1
        files = {part_file(last, self.parts, held_out=half) for half in (False, True)}
        return self.rows.carries and file in files

    @property
    def settings(self) -> dict[str, Any]:
        """What the bytes of every part depend on, beside its split; JSON values."""
        return {
            "layout": LAYOUT,
            "schema": [f"{one.name}: {type_text(one.type)}" for one in self._layout.schema],
            "tokenizer": self.tokenizer_sha256,
            "id_type": self.id_type,
            **self.reading.options.to_json(),
            **self.rows.to_json(),
            **({"sources": encode(self.sources)} if self.sources else {}),
        }

    @property
    def _layout(self) -> RowLayout:
        """Of the rows, but for the ids at the ends of documents."""
        kept = [column.field for column in self.reading.options.keep]
        if has_keys(self.rows):
            kept.append(KEY_FIELD)
        return RowLayout(settings=self.rows, id_type=self.id_type, kept=tuple(kept))

    def layout(self, tokenizer: Tokenizer) -> RowLayout:
        """Of the rows of all parts.

        Raises:
            ConfigError: a token to put at the ends of documents is none of the tokenizer's.
        """
        rows, special_tokens = self.rows, tokenizer.special_tokens
        check_special_tokens(tuple(special_tokens), rows)
        if rows.pack_remainder == "pad" and rows.pad_token is None:
            raise ConfigError("`pack_remainder` pad: no `pad_token` is named")
        return replace(
            self._layout,
            prepend=None if rows.prepend_token is None else special_tokens[rows.prepend_token],
            append=None if rows.append_token is None else special_tokens[rows.append_token],
            pad=None if rows.pad_token is None else special_tokens[rows.pad_token],
        )

    def manifest(
        self,
        parts: Iterable[FinishedPart],
        dead_letters: Sequence[DeadLetters] = (),
        *,
        splits: Iterable[Split] = (),
    ) -> EncodedManifest:
        """The manifest of finished parts.

        Args:
            parts: in any order.
            dead_letters: those of no part.
            splits: that were read, where they are not those of the parts.
        """
        ordered = sorted(parts, key=lambda part: (part.split.held_out, part.split.part))
        sources = {
            piece.file_index: Source(
                name=piece.name,
                size=piece.file_size,
                format=piece.format,
                compression=piece.compression,
                source=piece.source,
            )
            for split in (*(part.split for part in ordered), *splits)
            for piece in split.pieces
        }
        dead = [p.contents.dead_letters for p in ordered if p.contents.dead_letters]
        named, letters = tuple(map(part_of, ordered)), (*dead, *dead_letters)
        return EncodedManifest(
            tokenizer=TokenizerFile(sha256=self.tokenizer_sha256, vocab_size=self.vocab_size),
            id_type=self.id_type,
            settings=self.reading.options,
            rows=self.rows,
            totals=Totals.of(named, letters),
            inputs=tuple(source for _, source in sorted(sources.items())),
            parts=named,
            dead_letters=letters,
            mix=self.mix,
        )

    def fingerprint(self, split: Split) -> str:
        """SHA-256 (hex) of what the bytes of a split's part depend on."""
        half = ["held out"] if split.held_out else []
        shuffled = [self.parts, self.inputs_sha256] if self.rows.shuffles else []
        mixed = [] if self.mix is None else [self.mix.lasts]
        pieces = _told_apart(split)
        return fingerprint(
            [split.part, split.parts, pieces, self.settings, *half, *shuffled, *mixed]
        )

    def measure_fingerprint(self, split: Split) -> str:
        """The same of what is measured of a split for a mix, whatever that takes."""
        settings = {key: one for key, one in self.settings.items() if key not in CHOOSING}
        return fingerprint([split.part, split.parts, _told_apart(split), settings])

    def halves(self, split: Split) -> list[Split]:
        """A split for each part that is made of it: those held out for validation are last."""
        return [split, replace(split, held_out=True)] if self.rows.validation else [split]


def _told_apart(split: Split) -> list[dict[str, Any]]:
    """The pieces of a split, but for where they lie, and since when."""
    pieces = [asdict(piece) for piece in split.pieces]
    for piece in pieces:
        del piece["path"], piece["version"]
    return pieces


def encode_split(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    failures: Failures,
    *,
    observe: Callable[[EncodedBlock], object] | None = None,
) -> list[FinishedPart]:
    """Read and encode one split, and write its part, and the part held out for validation.

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
    layout = job.layout(tokenizer)
    encoder = SplitEncoder(tokenizer, split, layout=layout, mix=job.mix)
    with SplitReader(split, job.reading, failures) as reader:
        halves = job.halves(split)

        def documents() -> Iterator[list[tuple[Documents, int]]]:
            for block in reader:
                encoded = encoder.encode(block, reader.set_aside)
                if observe is not None:
                    observe(encoded)
                some = (encoded.half(held_out=half.held_out) for half in halves)
                yield [(documents, text_bytes(texts)) for documents, texts in some]

        parts = write_parts(
            *(halves, job, documents()),
            layout=layout,
            tokenizer=tokenizer,
            dead_letters=reader.finish,
        )
    use = encoder.cache_use
    counter("cache_hits").inc(use.hits)
    counter("cache_misses").inc(use.misses)
    return parts


class _Part:
    """A part that is being written.

    Args:
        split: that it is of.
        stack: closes its file.
        job: that makes it.
        layout: of its rows.
        unknown: the id of the unknown token, or None.
    """

    def __init__(
        self,
        split: Split,
        stack: ExitStack,
        *,
        job: EncodeJob,
        layout: RowLayout,
        unknown: int | None,
    ) -> None:
        self._split, self._job = split, job
        self._maker = row_maker(layout)
        self._sink = stack.enter_context(replacing(join(job.directory, split.file)))
        self._writer = stack.enter_context(PartWriter(self._sink, layout, unknown=unknown))
        self._text_bytes = self._documents = 0

    def add(self, documents: Documents, text_size: int) -> None:
        """Write the rows of the documents that come next."""
        self._writer.add(self._maker.add(documents))
        self._text_bytes += text_size
        self._documents += len(documents.ids)

    def finish(self, dead_letters: DeadLetters | None) -> None:
        """Write the rows that are left, and the footer."""
        self._writer.add(self._maker.finish())
        self._contents = self._writer.finish(
            fingerprint=self._job.fingerprint(self._split),
            documents=self._documents,
            text_bytes=self._text_bytes,
            dropped=self._maker.dropped,
            dead_letters=dead_letters,
            cut_documents=self._maker.cut,
            remainder=self._maker.remainder,
        )

    def finished(self) -> FinishedPart:
        """The part, once its file is closed."""
        written = self._sink.written()
        return FinishedPart(split=self._split, contents=self._contents, written=written)


def write_parts(
    splits: Sequence[Split],
    job: EncodeJob,
    documents: Iterable[Sequence[tuple[Documents, int]]],
    *,
    layout: RowLayout,
    tokenizer: Tokenizer,
    dead_letters: Callable[[], DeadLetters | None] = lambda: None,
) -> list[FinishedPart]:
    """Write the parts of a split.

    Args:
        splits: that the parts are of.
        job: that makes them.
        documents: for each part some, in its order, with the bytes of their texts.
        layout: of the rows.
        tokenizer: of the job.
        dead_letters: says, after all documents, where the bad records of the split are; the first
            part names them.

    Raises:
        OutputError: the file cannot be written.
    """
    unknown = unknown_id(tokenizer)
    with ExitStack() as stack:
        parts = [_Part(one, stack, job=job, layout=layout, unknown=unknown) for one in splits]
        for some in documents:
            for part, (batch, text_size) in zip(parts, some, strict=True):
                part.add(batch, text_size)
        letters = dead_letters()
        for part in parts:
            part.finish(letters if part is parts[0] else None)
    return [part.finished() for part in parts]


def write_carried(
    parts: Sequence[FinishedPart], job: EncodeJob, tokenizer: Tokenizer
) -> list[FinishedPart]:
    """Write the part that has what is left of the others, and the one held out for validation.

    Args:
        parts: the others, in any order.
        job: that makes them.
        tokenizer: of the job.

    Raises:
        OutputError: a file cannot be written.
    """
    layout, unknown = job.layout(tokenizer), unknown_id(tokenizer)
    ordered = sorted(parts, key=lambda part: part.split.part)
    made = []
    for last in job.halves(Split(part=job.filled, parts=job.parts, pieces=())):
        remainders = (
            row
            for part in ordered
            if part.split.held_out == last.held_out
            and (row := part.contents.carried(layout)) is not None
        )
        with (
            replacing(join(job.directory, last.file)) as sink,
            PartWriter(sink, layout, unknown=unknown) as writer,
        ):
            for rows in carried_rows(layout, remainders):
                writer.add(rows)
            contents = writer.finish(
                fingerprint=job.fingerprint(last),
                documents=0,
                text_bytes=0,
                dropped=Dropped(),
                dead_letters=None,
            )
        made.append(FinishedPart(split=last, contents=contents, written=sink.written()))
    return made


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


def write_manifest(
    parts: Iterable[FinishedPart], job: EncodeJob, *, shuffled: Sequence[ShuffledSplit] = ()
) -> dict[str, Any]:
    """Check that all parts are there, and write the manifest.

    Args:
        parts: in any order.
        job: that made them.
        shuffled: the splits that they were made of, in any order, where documents are shuffled.

    Raises:
        RecordError: over all parts, more bad records than the job may set aside.
        JobError: the runner lost a part.
    """
    ordered = sorted(shuffled, key=lambda one: one.split.part)
    manifest = job.manifest(
        parts,
        [one.dead_letters for one in ordered if one.dead_letters is not None],
        splits=[one.split for one in ordered],
    )
    check_failures(
        manifest.totals.failures,
        job.reading,
        [letters.file for letters in manifest.dead_letters],
        documents=manifest.totals.documents,
    )
    expected = part_files(job.parts, validation=bool(job.rows.validation))
    if [part.file for part in manifest.parts] != expected:
        raise JobError(
            f"the runner returned {len(manifest.parts)} parts of {len(expected)}: "
            "use another runner; parts that are there can be kept with `resume`"
        )
    check_splits(ordered, job)
    if error := wrong_mix(manifest):
        raise JobError(f"{error}: an input was changed while the job ran: start it again")
    read, written = sum(one.documents for one in ordered), manifest.totals.documents
    if ordered and read != written:
        raise JobError(
            f"{job.directory}: the splits have {read:,} documents, and the parts {written:,}: a "
            "temporary file was damaged: run the job again with `overwrite`"
        )
    if job.run:
        plan_of_run(job.directory, job.run)  # of another job by now: this one ends
    remove_temporaries(job.directory)
    for name, data in manifest.files().items():
        storage.write(join(job.directory, name), data)
    return manifest.to_json()


def wrong_mix(manifest: EncodedManifest) -> str:
    """Why what a mix has chosen is not what the parts hold; empty where it is, or all is taken."""
    if (mix := manifest.mix) is None:
        return ""
    shares = manifest.rows.shares
    asked = [(name, str(share), asked_of(mix.budget, share)) for name, share in shares.items()]
    if [(one.name, one.share, one.asked) for one in mix.sources] != asked:
        return "what its mix asks of each source is not its share of the budget"
    if (budget := manifest.rows.token_budget) not in (None, mix.budget):
        return f"the budget of the mix is {mix.budget:,}, `token_budget` {budget:,}"
    totals = manifest.totals
    found = (totals.documents, totals.tokens + totals.dropped.tokens)
    if found == (mix.documents, mix.tokens):
        return ""
    return (
        f"the mix takes {mix.documents:,} documents of {mix.tokens:,} tokens, the parts have "
        f"{found[0]:,} of {found[1]:,}"
    )


def check_splits(shuffled: Sequence[ShuffledSplit], job: EncodeJob) -> None:
    """See that all splits of a shuffled corpus are there.

    Raises:
        JobError: the runner lost one.
    """
    if sorted(one.split.part for one in shuffled) != list(range(job.splits)):
        raise JobError(
            f"the runner returned {len(shuffled)} splits of {job.splits}: use another runner; what "
            "is there can be kept with `resume`"
        )


def encode_job(
    tokenizer: Tokenizer,
    text: str,
    *,
    reading: Reading,
    encoding: EncodeSettings,
    parts: int,
    run: str = "",
    splits: int = 0,
    inputs_sha256: str = "",
    sources: tuple[MixSource, ...] = (),
) -> EncodeJob:
    """The job that these settings mean.

    Args:
        tokenizer: whose ids are made.
        text: its ``tokenizer.json``.
        reading: how documents are read, and the output directory.
        encoding: what the rows hold.
        parts: as in `EncodeJob`.
        run: the id of the job's run, where it has one.
        splits: as in `EncodeJob`.
        inputs_sha256: as in `EncodeJob`.
        sources: as in `EncodeJob`.

    Raises:
        ConfigError: the type of the ids that is asked for does not hold them.
    """
    return EncodeJob(
        reading=reading,
        tokenizer_sha256=hashlib.sha256(text.encode()).hexdigest(),
        vocab_size=tokenizer.max_id + 1,
        id_type=id_type(tokenizer, encoding),
        rows=encoding.rows,
        parts=parts,
        run=run,
        splits=splits,
        inputs_sha256=inputs_sha256,
        sources=sources,
    )


def in_tokens(rows: _Rows, special_tokens: Collection[str], roles: Roles) -> _Rows:
    """The settings with tokens in place of roles: in place of ``eos``, what ends a text.

    What pads rows is the token of the role ``pad``, where no other is named.

    Args:
        rows: the settings.
        special_tokens: of the tokenizer; one that is called like a role is meant first.
        roles: of the tokenizer.

    Raises:
        ConfigError: the tokenizer has no token for a role.
    """
    prepend, append = (
        token_of_role(getattr(rows, name), special_tokens, roles, option=f"`{name}`")
        for name in ("prepend_token", "append_token")
    )
    pad = rows.pad_token
    if rows.pack_remainder == "pad":
        if pad is None and roles.pad is None:
            raise ConfigError(
                "`pack_remainder` pad: the tokenizer has no token for the role pad: name a special "
                "token with `pad_token`, or train it with `pad` TOKEN"
            )
        pad = roles.pad if pad is None else pad
        pad = token_of_role(pad, special_tokens, roles, option="`pad_token`")
    return replace(rows, prepend_token=prepend, append_token=append, pad_token=pad)


def token_of_role(
    token: str | None, special_tokens: Collection[str], roles: Roles, *, option: str
) -> str | None:
    """A token that an option names, or the one of the role that it names; None where it is None.

    Raises:
        ConfigError: the tokenizer has no token for the role.
    """
    if token is None or token not in ROLES or token in special_tokens:
        return token
    if (found := roles.tokens.get(token)) is None:
        raise ConfigError(
            f"{option} {token}: the tokenizer has no token for this role: name a special token, or "
            f"train it with `{token}` TOKEN"
        )
    return found


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
        ("`pad_token`", rows.pad_token),
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
