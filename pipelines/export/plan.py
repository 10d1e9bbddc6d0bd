"""The plan of an export: its sources, the parts that it pins, and its units of work.

The plan pins the parts of each source as its manifest names them when the export begins: name,
size, SHA-256. Parts that are added later change nothing; a pinned part that is missing or changed
is an error. The pins are in ``sources.parquet``; their fingerprint is in the header of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from bpe._codec import to_jsonable
from bpe.files import fingerprint
from pipelines import storage
from pipelines.encode.manifest import read_encoded
from pipelines.encode.tokens import check_named_tokens, token_of_role
from pipelines.errors import ConfigError, InputError
from pipelines.export.manifest import ExportedSource, ExportedTokenizer, ExportHeader
from pipelines.output.names import PINS, TOKENIZER, read_plan
from pipelines.settings import split_name
from pipelines.storage import join, replacing
from pipelines.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe import Tokenizer
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.export.manifest import ExportManifest
    from pipelines.settings import ExportSettings

UNIT_TOKENS = 1 << 24  # of a unit of work: about 64 MB of English, 32 or 64 MB of ids
LAYOUT = 4  # raise it when the same ids and settings give other bytes than before


@dataclass(frozen=True)
class Pin:
    """A pinned part of a source, with the size in bytes and the SHA-256 (hex) of its file."""

    source: int
    file: str
    bytes: int
    sha256: str
    documents: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Span:
    """Consecutive pinned parts of one source, at least one.

    Attributes:
        first: the number of the first part, over all sources.
        pins: the parts.
    """

    first: int
    pins: list[Pin]

    @property
    def source(self) -> int:
        """Return the number of the source."""
        return self.pins[0].source

    @property
    def counts(self) -> tuple[int, int]:
        """Return the numbers of documents and tokens in the parts."""
        return sum(pin.documents for pin in self.pins), sum(pin.tokens for pin in self.pins)


@dataclass(frozen=True, kw_only=True)
class ExportPlan(ExportHeader):
    """The plan of an export, which workers get; its size does not grow with the corpus.

    Attributes:
        directories: the directories of the sources; two exports may differ in them alone.
        pad: the id that fills rows, or None.
    """

    directories: tuple[str, ...]
    pad: int | None

    def __hash__(self) -> int:
        return hash((self.sources, self.directories))

    @property
    def selects(self) -> bool:
        """Return True if documents may be held out, or chosen, which takes a pass over sizes."""
        return self.settings.chooses or self.validation > 0

    @property
    def validation(self) -> Fraction:
        """Return the share of documents held out for validation."""
        return Fraction(str(self.settings.validation))


@dataclass(frozen=True, kw_only=True)
class SourceIds:
    """The ids of a source.

    Attributes:
        name: the name of the source.
        directory: the directory of the source, as given.
        manifest: the manifest of the directory, with the parts of this source alone.
    """

    name: str
    directory: str
    manifest: EncodedManifest


def read_sources(sources: Sequence[str], *, discarded: bool = False) -> list[SourceIds]:
    """Return the ids of each source; read each manifest once.

    A directory without a name has a source for each name of its inputs; else it is called
    ``source-0`` and so on, by its position, so that no bytes depend on its path. A directory with
    the name of some of its inputs has the parts of these inputs alone.

    Args:
        sources: ``NAME=DIR`` or ``DIR`` of each.
        discarded: True if the parts of the sources may be gone.

    Raises:
        InputError: a source is not a complete directory of ids.
        ConfigError: a directory is empty, or two sources have one name.
    """
    found: dict[str, SourceIds] = {}
    for number, text in enumerate(sources):
        given, directory = split_name(text)
        if not directory:
            raise ConfigError(f"the source {text!r} has no directory: write NAME=DIR")
        manifest = read_encoded(directory, discarded=discarded)
        inner = manifest.totals.sources
        named = not given and all(part.source for part in manifest.parts)
        for name in (inner if named else ()) or (given or f"source-{number}",):
            if name in found:
                raise ConfigError(f"the source {name} is given twice: give each a name of its own")
            parts = manifest.parts
            if name in inner:
                parts = tuple(part for part in parts if part.source == name)
            own = replace(manifest, parts=parts)
            found[name] = SourceIds(name=name, directory=directory, manifest=own)
    return list(found.values())


def plan_export(
    sources: Sequence[str],
    settings: ExportSettings,
    *,
    unit_tokens: int = UNIT_TOKENS,
    pinned: list[Pin] | None = None,
    discarded: bool = True,
) -> tuple[ExportPlan, list[Pin], str]:
    """Plan an export, without writing files.

    Args:
        sources: as for `read_sources`.
        settings: what is exported.
        unit_tokens: as in `ExportPlan`.
        pinned: the parts that an earlier run of the export has pinned; None: pin all parts.
        discarded: True if the parts may be gone.

    Returns:
        The plan, the pinned parts, and a warning, or nothing.

    Raises:
        InputError: a source is not a complete directory of ids.
        ConfigError: the sources do not fit each other or the settings.
    """
    found = read_sources(sources, discarded=discarded)
    _check_alike(found)
    _check_shares(settings, [source.name for source in found])
    pins = [
        Pin(number, part.file, part.bytes, part.sha256, part.documents, part.tokens)
        for number, source in enumerate(found)
        for part in source.manifest.parts
    ]
    if pinned is not None and pinned[-1].source < len(found):
        pins = pinned
    first = found[0]
    if not pins:
        raise InputError(f"{first.directory}: no file was encoded yet: there is nothing to export")
    tokenizer = load_tokenizer(join(storage.located(first.directory), TOKENIZER))
    of = first.manifest.tokenizer
    plan = ExportPlan(
        layout=LAYOUT,
        sources=tuple(
            pinned_source(number, source.name, pins) for number, source in enumerate(found)
        ),
        directories=tuple(storage.located(source.directory) for source in found),
        settings=settings,
        tokenizer=ExportedTokenizer(sha256=of.sha256, vocab_size=of.vocab_size),
        id_type=first.manifest.id_type,
        columns=_columns(found),
        pad=_pad(settings, tokenizer),
        unit_tokens=unit_tokens,
    )
    return plan, pins, _glued(found, settings, tokenizer)


def plan_again(manifest: ExportManifest, sources: Sequence[str], directory: str) -> ExportPlan:
    """Return the plan by which an existing export is made again.

    Args:
        manifest: the manifest of the export.
        sources: as for `read_sources`: where the sources are now.
        directory: the directory of the export, which has its tokenizer.

    Raises:
        ConfigError: the names given are not those of the export's sources.
    """
    names = [source.name for source in manifest.sources]
    found = {source.name: source.directory for source in read_sources(sources)}
    if sorted(found) != sorted(names):
        raise ConfigError(
            f"the export {directory} is of the sources {', '.join(names)}, not of "
            f"{', '.join(found)}: name each, in this order, or as NAME=DIR"
        )
    tokenizer = load_tokenizer(join(directory, TOKENIZER))
    return ExportPlan(
        **manifest.head,
        directories=tuple(storage.located(found[name]) for name in names),
        pad=_pad(manifest.settings, tokenizer),
    )


def pinned_before(directory: str) -> list[Pin] | None:
    """Return the parts that an earlier run pinned in a directory; None if no part is pinned."""
    try:
        sources = read_plan(directory)["settings"]["sources"]
        return stored_pins(directory, [ExportedSource(**source) for source in sources]) or None
    except (InputError, KeyError, TypeError):
        return None


def pinned_source(number: int, name: str, pins: Sequence[Pin]) -> ExportedSource:
    """Return the source of this number, with the sums and the fingerprint of its pins."""
    own = [pin for pin in pins if pin.source == number]
    return ExportedSource(
        name=name,
        files=len(own),
        documents=sum(pin.documents for pin in own),
        tokens=sum(pin.tokens for pin in own),
        pins=fingerprint([[pin.file, pin.bytes, pin.sha256] for pin in own]),
    )


def _glued(sources: Sequence[SourceIds], settings: ExportSettings, tokenizer: Tokenizer) -> str:
    """Return a warning if packed documents have no token between them; else an empty string."""
    end = tokenizer.roles.tokens.get("eos")
    if settings.pack is None or end is None:
        return ""
    without = [
        source.name
        for source in sources
        if source.manifest.rows.append_token is None and source.manifest.rows.prepend_token is None
    ]
    if not without:
        return ""
    return (
        f"packed rows join the documents of {', '.join(without)} without a token between them, "
        f"though the tokenizer has the end-of-document token {end!r}: encode with --append-token "
        "eos, unless that is meant"
    )


def _check_alike(sources: Sequence[SourceIds]) -> None:
    """Check that all sources have the same tokenizer and type of ids.

    Raises:
        ConfigError: two sources differ in tokenizer or type of ids.
    """
    first, *others = sources
    for other in others:
        for what, remedy in (("tokenizer.sha256", "tokenizer"), ("id_type", "`id_type`")):
            there, here = (attrgetter(what)(one.manifest) for one in (first, other))
            if here != there:
                raise ConfigError(
                    f"the sources {first.name} ({first.directory}) and {other.name} "
                    f"({other.directory}) differ in {what}: {there}, {here}: "
                    f"encode both with the same {remedy}"
                )


def _check_shares(settings: ExportSettings, sources: list[str]) -> None:
    """Check that a mix names each source.

    Raises:
        ConfigError: a source has no share, a share no source, or a budget no shares.
    """
    shares = settings.shares
    if unknown := [name for name in shares if name not in sources]:
        raise ConfigError(
            f"`mix` {unknown[0]}: there is no such source: the sources are {', '.join(sources)}"
        )
    if shares and (missing := [name for name in sources if name not in shares]):
        raise ConfigError(f"`mix`: the source {missing[0]} has no share: add it, or leave it out")
    if settings.token_budget is not None and not shares and len(sources) > 1:
        raise ConfigError("`token_budget`: give the share of each source with `mix` NAME=SHARE")


def _columns(sources: Sequence[SourceIds]) -> dict[str, str]:
    """Return the types of the columns that pass through, of all sources, by name.

    Raises:
        ConfigError: a column has different types in two sources.
    """
    columns: dict[str, tuple[str, str]] = {}
    for source in sources:
        for column in source.manifest.settings.keep:
            first, other = columns.setdefault(column.name, (source.name, column.type))
            if other != column.type:
                raise ConfigError(
                    f"the column {column.name!r} is {other} in the source {first} and "
                    f"{column.type} in {source.name}: encode one of them again with `keep` "
                    f"{column.name}:{other}"
                )
    return {name: kind for name, (_, kind) in columns.items()}


def _pad(settings: ExportSettings, tokenizer: Tokenizer) -> int | None:
    """Return the id that fills rows; None if rows are not filled.

    Raises:
        ConfigError: the tokenizer has no pad token.
    """
    if settings.pack_remainder != "pad":
        return None
    pad = settings.pad_token or tokenizer.roles.pad
    if pad is None:
        raise ConfigError(
            "`pack_remainder` pad: the tokenizer has no token for the role pad: name a special "
            "token with `pad_token`, or train it with `pad` TOKEN"
        )
    token = token_of_role(pad, tokenizer.special_tokens, tokenizer.roles, option="`pad_token`")
    check_named_tokens([("`pad_token`", str(token))], tuple(tokenizer.special_tokens))
    return tokenizer.special_tokens[str(token)]


def spans_of(pins: Sequence[Pin], unit_tokens: int) -> list[Span]:
    """Return spans of at most ``unit_tokens`` tokens, or of one part that has more tokens."""
    found, tokens = list[Span](), 0
    for number, pin in enumerate(pins):
        tokens += pin.tokens
        if not found or found[-1].source != pin.source or tokens > unit_tokens:
            found.append(Span(first=number, pins=[]))
            tokens = pin.tokens
        found[-1].pins.append(pin)
    return found


def write_pins(directory: str, pins: Sequence[Pin]) -> None:
    """Store the pinned parts for the workers.

    Raises:
        OutputError: the pinned parts cannot be written.
    """
    table = pa.Table.from_pylist([to_jsonable(pin) for pin in pins])
    with replacing(join(directory, PINS)) as sink:
        pq.write_table(table, sink, compression="zstd")


def stored_pins(directory: str, sources: Sequence[ExportedSource]) -> list[Pin]:
    """Return the pinned parts of these sources in an output directory.

    Raises:
        InputError: the pinned parts cannot be read, or are others: the file was changed.
    """
    path = join(directory, PINS)
    data = storage.read(path)
    try:
        pins = [Pin(**row) for row in pq.read_table(pa.BufferReader(data)).to_pylist()]
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{path}: damaged: {error}") from error
    for number, source in enumerate(sources):
        if pinned_source(number, source.name, pins) != source:
            raise InputError(
                f"{path}: the pinned parts of the source {source.name} are not those of the "
                "manifest: the file was changed or damaged: export again with `overwrite`"
            )
    return pins
