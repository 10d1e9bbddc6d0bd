"""What an export is made of: its sources, the parts that it pins, and its units of work.

The plan pins the parts of each source as its manifest names them when the export begins: name,
size, SHA-256. Parts that are added later change nothing; a pinned part that is missing or changed
is an error. The pins lie in ``sources.parquet``; their fingerprint is in the header of the plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bpe._codec import encode
from pipelines import storage
from pipelines.corpus.documents.types import parse_type, type_text
from pipelines.encode.manifest import read_encoded
from pipelines.encode.steps import check_named_tokens, token_of_role
from pipelines.errors import ConfigError, InputError
from pipelines.export.rows import RowLayout
from pipelines.option import changed
from pipelines.output.names import PINS, TOKENIZER, fingerprint, read_plan
from pipelines.output.state import complete
from pipelines.storage import join, replacing
from pipelines.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.export.manifest import ExportManifest, PinnedSource
    from pipelines.settings import ExportSettings

UNIT_TOKENS = 1 << 24  # of a unit of work: about 64 MB of English, 32 or 64 MB of ids
LAYOUT = 2  # raise it when the same ids and settings give other bytes than before
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BY_POSITION = re.compile(r"source-[0-9]+")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A directory of ids, as `bpe encode` writes them.

    Attributes:
        name: in messages, in ``--mix``, and in the hashes that choose and shuffle.
        directory: where it is; no part of what makes two exports the same.
        files: how many parts are pinned.
        documents: in them.
        tokens: in them.
        pins: SHA-256 (hex) of names, sizes and SHA-256s of these parts.
    """

    name: str
    directory: str
    files: int
    documents: int
    tokens: int
    pins: str


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A part of a source: file, size in bytes, SHA-256 (hex), documents and tokens in it."""

    source: int
    file: str
    bytes: int
    sha256: str
    documents: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Span:
    """Consecutive pinned parts of one source.

    Attributes:
        source: its number.
        first: the number of the first part, over all sources.
        files: how many there are.
    """

    source: int
    first: int
    files: int


@dataclass(frozen=True, kw_only=True)
class ExportPlan:
    """Everything a worker must know of an export, but for what grows with the corpus.

    Attributes:
        sources: in order.
        settings: what is exported.
        tokenizer_sha256: of ``tokenizer.json`` (hex).
        vocab_size: one more than the greatest id there may be.
        id_type: ``uint16`` or ``uint32``.
        columns: the columns that pass through.
        pad: the id that fills rows, or None.
        unit_tokens: at most so many tokens make a unit of work, where no part has more.
    """

    sources: tuple[Source, ...]
    settings: ExportSettings
    tokenizer_sha256: str
    vocab_size: int
    id_type: str
    columns: tuple[pa.Field, ...]
    pad: int | None
    unit_tokens: int

    @property
    def header(self) -> dict[str, Any]:
        """What makes two runs the same export: the head of the plan and of the manifest."""
        sources = [encode(source) for source in self.sources]
        for source in sources:
            del source["directory"]
        return {
            "layout": LAYOUT,
            "sources": sources,
            "tokenizer": {"sha256": self.tokenizer_sha256, "vocab_size": self.vocab_size},
            "id_type": self.id_type,
            "columns": {column.name: type_text(column.type) for column in self.columns},
            "unit_tokens": self.unit_tokens,
            "settings": {"to": self.settings.to, **changed(self.settings)},
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the header: what every unit's files depend on."""
        return fingerprint(self.header)

    @property
    def layout(self) -> RowLayout:
        """Of the rows."""
        return RowLayout(
            settings=self.settings, id_type=self.id_type, kept=self.columns, pad=self.pad
        )

    @property
    def validation(self) -> Fraction:
        """The share of documents held out for validation."""
        return Fraction(str(self.settings.validation))


def parse_sources(given: Sequence[str]) -> dict[str, str]:
    """Directories by the name of the source, from ``NAME=DIR`` or ``DIR``.

    A source without a name is called ``source-0`` and so on, by its position, so that no bytes
    depend on where it lies; `with_inner` names those of inputs with names.

    Raises:
        ConfigError: there is none, or a name stands for two.
    """
    if not given:
        raise ConfigError("there is no source: name a directory that bpe encode wrote")
    sources: dict[str, str] = {}
    for number, text in enumerate(given):
        name, equals, directory = text.partition("=")
        if not equals or "/" in name:
            name, directory = f"source-{number}", text
        elif not _NAME.fullmatch(name):
            raise ConfigError(
                f"the source {text!r}: a name has letters, digits, '-' and '_' alone, and a path "
                f"with '=' in its first component is written ./{text}"
            )
        if name in sources:
            raise ConfigError(f"the source {name} is given twice: give each a name of its own")
        if not directory:
            raise ConfigError(f"the source {text!r} has no directory: write NAME=DIR")
        sources[name] = directory
    return sources


def with_inner(sources: Mapping[str, str]) -> dict[str, str]:
    """The same, where a directory without a name has one source for each name of its inputs.

    Raises:
        InputError: a source is not a complete directory of ids.
        ConfigError: a name stands for two.
    """
    found: dict[str, str] = {}
    for given, directory in sources.items():
        complete(directory, "encoded")
        manifest = read_encoded(directory, discarded=True)
        inner = manifest.totals.sources if _BY_POSITION.fullmatch(given) else {}
        if any(not part.source for part in manifest.parts):
            inner = {}
        for name in inner or (given,):
            if name in found:
                raise ConfigError(f"the source {name} is given twice: give each a name of its own")
            found[name] = directory
    return found


def _manifest_of(name: str, directory: str) -> EncodedManifest:
    """What a source is: all of a directory, or what it holds of its inputs with this name."""
    manifest = read_encoded(directory, discarded=True)
    if name not in manifest.totals.sources:
        return manifest
    return replace(manifest, parts=tuple(p for p in manifest.parts if p.source == name))


def plan_export(
    sources: Mapping[str, str],
    settings: ExportSettings,
    *,
    unit_tokens: int | None = None,
    pinned: Sequence[Pin] | None = None,
) -> tuple[ExportPlan, list[Pin], Tokenizer]:
    """Plan an export; nothing is written.

    Args:
        sources: directories by name.
        settings: what is exported.
        unit_tokens: as in `ExportPlan`; None for `UNIT_TOKENS`.
        pinned: the parts that an earlier run of the export has pinned; None: all that there are.

    Raises:
        InputError: a source is not a complete directory of ids, or lacks a part that is pinned.
        ConfigError: the sources do not fit each other or the settings.
    """
    sources = with_inner(sources)
    manifests = {name: _manifest_of(name, directory) for name, directory in sources.items()}
    _check_alike(manifests, sources)
    _check_shares(settings, list(sources))
    pins = list(_pins(manifests))
    if pinned is not None and pinned[-1].source < len(sources):
        pins = _still_there(pinned, pins, list(sources.values()))
    if not pins:
        raise InputError(
            f"{next(iter(sources.values()))}: no file was encoded yet: there is nothing to export"
        )
    first, at = next(iter(manifests.values())), next(iter(sources.values()))
    tokenizer = load_tokenizer(join(storage.located(at), TOKENIZER))
    plan = ExportPlan(
        sources=tuple(
            _source(number, name, storage.located(directory), pins)
            for number, (name, directory) in enumerate(sources.items())
        ),
        settings=settings,
        tokenizer_sha256=first.tokenizer.sha256,
        vocab_size=first.tokenizer.vocab_size,
        id_type=first.id_type,
        columns=_columns(manifests),
        pad=_pad(settings, tokenizer),
        unit_tokens=UNIT_TOKENS if unit_tokens is None else unit_tokens,
    )
    return plan, pins, tokenizer


def plan_again(
    manifest: ExportManifest, directories: Mapping[str, str], directory: str
) -> ExportPlan:
    """The plan of an export that is there, to make it again.

    Args:
        manifest: of the export.
        directories: where the sources are now, by name.
        directory: of the export, which has its tokenizer.

    Raises:
        ConfigError: a source of the export is not named, or another one is.
    """
    names = [source.name for source in manifest.sources]
    directories = with_inner(directories)
    if sorted(directories) != sorted(names):
        raise ConfigError(
            f"the export {directory} is of the sources {', '.join(names)}, not of "
            f"{', '.join(directories)}: name each, in this order, or as NAME=DIR"
        )
    tokenizer = load_tokenizer(join(directory, TOKENIZER))
    return ExportPlan(
        sources=tuple(
            Source(
                name=one.name,
                directory=storage.located(directories[one.name]),
                files=one.files,
                documents=one.documents,
                tokens=one.tokens,
                pins=one.pins,
            )
            for one in manifest.sources
        ),
        settings=manifest.settings,
        tokenizer_sha256=manifest.tokenizer.sha256,
        vocab_size=manifest.tokenizer.vocab_size,
        id_type=manifest.id_type,
        columns=tuple(pa.field(name, parse_type(kind)) for name, kind in manifest.columns.items()),
        pad=_pad(manifest.settings, tokenizer),
        unit_tokens=manifest.unit_tokens,
    )


def _still_there(
    pinned: Sequence[Pin], pins: Sequence[Pin], directories: Sequence[str]
) -> list[Pin]:
    """The pinned parts, which must still be there; the sources may have others by now."""
    now = {(pin.source, pin.file): pin for pin in pins}
    for pin in pinned:
        path = join(directories[pin.source], pin.file)
        superseded = (pin.source, pin.file) not in now and storage.exists(path)
        if not superseded and now.get((pin.source, pin.file)) != pin:
            raise InputError(
                f"{path}: this export was begun with this part, "
                "which the ids no longer have as it was: export again with `overwrite`"
            )
    return list(pinned)


def pinned_before(directory: str) -> list[Pin] | None:
    """The parts that an earlier run has pinned in an output directory; None where none has."""
    header = read_plan(directory).get("settings")
    try:
        pins = stored_pins(directory)
        stated = [source["pins"] for source in header["sources"]] if header else []
    except (InputError, KeyError, TypeError):
        return None
    found = [_fingerprint(pins, source) for source in range(len(stated))]
    return pins if pins and found == stated else None


def check_pins(sources: Sequence[PinnedSource], pins: Sequence[Pin], path: str) -> None:
    """Refuse pinned parts other than those that the manifest of an export states.

    Raises:
        InputError: they are others: their file was changed.
    """
    for number, source in enumerate(sources):
        found = _source(number, source.name, "", pins)
        if any(getattr(found, one.name) != getattr(source, one.name) for one in fields(source)):
            raise InputError(
                f"{path}: the pinned parts of the source {source.name} are not those of the "
                "manifest: the file was changed or damaged: export again with `overwrite`"
            )


def glued(sources: Mapping[str, str], settings: ExportSettings, tokenizer: Tokenizer) -> str:
    """The warning that packed documents follow each other without a token between; or nothing."""
    end = tokenizer.roles.tokens.get("eos")
    if settings.pack is None or end is None:
        return ""
    without = [
        name
        for name, directory in sources.items()
        for rows in [read_encoded(directory, discarded=True).rows]
        if rows.append_token is None and rows.prepend_token is None
    ]
    if not without:
        return ""
    return (
        f"packed rows join the documents of {', '.join(without)} without a token between them, "
        f"though the tokenizer has the end-of-document token {end!r}: encode with --append-token "
        "eos, unless that is meant"
    )


def _source(number: int, name: str, directory: str, pins: Sequence[Pin]) -> Source:
    own = [pin for pin in pins if pin.source == number]
    return Source(
        name=name,
        directory=directory,
        files=len(own),
        documents=sum(pin.documents for pin in own),
        tokens=sum(pin.tokens for pin in own),
        pins=_fingerprint(pins, number),
    )


def _fingerprint(pins: Sequence[Pin], source: int) -> str:
    """SHA-256 (hex) of the pinned parts of a source."""
    own = [pin for pin in pins if pin.source == source]
    return fingerprint([[pin.file, pin.bytes, pin.sha256] for pin in own])


def _pins(manifests: Mapping[str, EncodedManifest]) -> Iterator[Pin]:
    for number, manifest in enumerate(manifests.values()):
        for part in manifest.parts:
            yield Pin(
                source=number,
                file=part.file,
                bytes=part.bytes,
                sha256=part.sha256,
                documents=part.documents,
                tokens=part.tokens,
            )


def _check_alike(manifests: Mapping[str, EncodedManifest], sources: Mapping[str, str]) -> None:
    """Refuse sources whose ids mean different things.

    Raises:
        ConfigError: they are of different tokenizers or types of ids.
    """
    (first, expected), *others = manifests.items()
    for name, manifest in others:
        for what, remedy in (
            ("tokenizer.sha256", "encode both with the same tokenizer"),
            ("id_type", "encode both with the same `id_type`"),
        ):
            here, there = (_value(one, what) for one in (manifest, expected))
            if here != there:
                raise ConfigError(
                    f"the sources {first} ({sources[first]}) and {name} ({sources[name]}) differ "
                    f"in {what}: {there}, {here}: {remedy}"
                )


def _value(manifest: Any, path: str) -> Any:
    for name in path.split("."):
        manifest = getattr(manifest, name)
    return manifest


def _check_shares(settings: ExportSettings, sources: list[str]) -> None:
    """Refuse a mix that does not name each source.

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


def _columns(manifests: Mapping[str, EncodedManifest]) -> tuple[pa.Field, ...]:
    """The columns that pass through: of all sources, each once.

    Raises:
        ConfigError: two sources have one of different types.
    """
    columns: dict[str, tuple[str, pa.Field]] = {}
    for name, manifest in manifests.items():
        for column in manifest.settings.keep:
            field = column.field.with_nullable(True)
            first, other = columns.setdefault(field.name, (name, field))
            if other.type != field.type:
                raise ConfigError(
                    f"the column {field.name!r} is {other.type} in the source {first} and "
                    f"{field.type} in {name}: encode one of them again with `keep` "
                    f"{field.name}:{other.type}"
                )
    return tuple(field for _, field in columns.values())


def _pad(settings: ExportSettings, tokenizer: Tokenizer) -> int | None:
    """The id that fills rows.

    Raises:
        ConfigError: the tokenizer has no such token.
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


def spans(pins: Sequence[Pin], unit_tokens: int) -> list[Span]:
    """Consecutive parts of a source, together of at most so many tokens; at least one part each."""
    found: list[Span] = []
    tokens = 0
    for number, pin in enumerate(pins):
        last = found[-1] if found else None
        if last is None or last.source != pin.source or tokens + pin.tokens > unit_tokens:
            found.append(Span(source=pin.source, first=number, files=1))
            tokens = pin.tokens
        else:
            found[-1] = replace(last, files=last.files + 1)
            tokens += pin.tokens
    return found


def write_pins(directory: str, pins: Sequence[Pin]) -> None:
    """Store the pinned parts for the workers.

    Raises:
        OutputError: they cannot be written.
    """
    table = pa.Table.from_pylist([encode(pin) for pin in pins])
    with replacing(join(directory, PINS)) as sink:
        pq.write_table(table, sink, compression="zstd")


def read_pins(directory: str, run: str) -> list[Pin]:
    """The pinned parts that a run has stored; read once a process.

    Raises:
        InputError: they cannot be read.
    """
    return _read_pins(directory, run)


@lru_cache(maxsize=2)
def _read_pins(directory: str, run: str) -> list[Pin]:  # noqa: ARG001 - a run has its own
    return stored_pins(directory)


def stored_pins(directory: str) -> list[Pin]:
    """The pinned parts that lie in an output directory.

    Raises:
        InputError: they cannot be read.
    """
    data = storage.read(join(directory, PINS))
    try:
        return [Pin(**row) for row in pq.read_table(pa.BufferReader(data)).to_pylist()]
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{join(directory, PINS)}: damaged: {error}") from error
