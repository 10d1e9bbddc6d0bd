"""Subject and result of a comparison as JSON: the file of ``bpe compare --output``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from bpe.explain import visible
from pipelines import storage
from pipelines.compare.tokenizers import ComparedTokenizer  # noqa: TC001 - decoded by its annotation
from pipelines.compare.totals import WHOLE, described
from pipelines.corpus.documents import ReadOptions  # noqa: TC001 - likewise
from pipelines.corpus.reading import check_failures
from pipelines.errors import ConfigError, InputError
from pipelines.output.names import dead_letters_in, read_json_object
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.compare.pieces import Difference
    from pipelines.compare.totals import ComparisonTotals
    from pipelines.corpus.reading import Reading

EXAMPLES = 20
MAX_GROUPS = 100_000
KIND = "comparison"
VERSION = 2
_SHOWN_FAILURES = 10


@dataclass(frozen=True, kw_only=True)
class Input:
    """A file of the corpus and its stored size in bytes."""

    name: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The subject of a comparison, as the plan holds it.

    Attributes:
        tokenizers: their files and names.
        tokenizers_sha256: SHA-256 of the ``tokenizer.json`` of each (hex).
        options: the options that records are read with.
        by: the groups: None, ``file``, or a column.
        inputs: the files of the corpus.
    """

    tokenizers: tuple[ComparedTokenizer, ...]
    tokenizers_sha256: tuple[str, ...]
    options: ReadOptions
    by: str | None
    inputs: tuple[Input, ...]


def check_groups(by: str | None, number: int) -> None:
    """Check the number of groups.

    Raises:
        ConfigError: the column has too many values.
    """
    if number > MAX_GROUPS:
        raise ConfigError(
            f"`by` {by}: more than {MAX_GROUPS:,} values: name a column with fewer, such as the "
            "language"
        )


def comparison(
    subject: Subject,
    tokenizers: Sequence[Tokenizer],
    totals: ComparisonTotals,
    *,
    differences: Sequence[Difference],
    failures: int,
    bad_records: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the result as JSON values.

    Args:
        subject: tokenizers and inputs of the comparison.
        tokenizers: the loaded tokenizers.
        totals: over the corpus and by group. The key of a group is ``=`` and its value; that of
            documents without a value is empty.
        differences: of each further tokenizer from the first; empty if pieces were not counted.
        failures: the number of bad records set aside.
        bad_records: the first bad records.
    """
    names = [file.name for file in subject.tokenizers]
    sizes = {key: int(numbers[1]) for key, numbers in totals.numbers.items() if key != WHOLE}
    return {
        "kind": KIND,
        "version": VERSION,
        "tokenizers": [
            {
                "name": file.name,
                "path": file.path,
                "vocab_size": len(tokenizer),
                "pretokenizer": str(tokenizer.pretokenizer),
                "model": type(tokenizer.model).__name__,
            }
            for file, tokenizer in zip(subject.tokenizers, tokenizers, strict=True)
        ],
        "inputs": [vars(one) for one in subject.inputs],
        "by": subject.by,
        "failures": failures,
        "bad_records": bad_records,
        "total": described(totals, WHOLE, tokenizers),
        "groups": [
            {"name": key[1:] if key else None, **described(totals, key, tokenizers)}
            for key in sorted(sizes, key=lambda key: (-sizes[key], key))
        ],
        "differences": [
            {
                "first": names[0],
                "second": name,
                "pieces_with_fewer_tokens": one.fewer,
                "pieces_with_more_tokens": one.more,
                "pieces_with_as_many_tokens": one.same,
                "examples": [
                    _example(row["piece"], row["count"], row["more"], (tokenizers[0], tokenizer))
                    for row in one.examples.to_pylist()
                ],
            }
            for one, name, tokenizer in zip(differences, names[1:], tokenizers[1:], strict=False)
        ],
    }


def _example(
    piece: bytes, count: int, more: int, tokenizers: Sequence[Tokenizer]
) -> dict[str, Any]:
    return {
        "piece": visible(piece),
        "count": count,
        "more_tokens": count * more,
        "tokens": [
            [visible(one.token_bytes(id_)) for id_ in islice(one.encode(piece), 100)]
            for one in tokenizers
        ],
    }


def shown_failures(reading: Reading, failures: int, documents: int) -> list[dict[str, Any]]:
    """Return place and reason of the first bad records.

    Raises:
        RecordError: there are more than ``max_failures``.
    """
    if not failures:
        return []
    files = dead_letters_in(reading.directory)
    check_failures(failures, reading, files, documents=documents)

    def letters() -> Iterator[dict[str, Any]]:
        for file in files:
            yield from map(json.loads, storage.read(join(reading.directory, file)).splitlines())

    names = ("file", "unit", "place", "reason")
    return [{name: one[name] for name in names} for one in islice(letters(), _SHOWN_FAILURES)]


def is_comparison(path: str) -> bool:
    """Return whether a ``.json`` file holds a comparison, by its ``kind``."""
    value = read_json_object(path) if path.endswith(".json") else None
    return value is not None and value.get("kind") == KIND


def read_comparison(path: str) -> dict[str, Any]:
    """Read a file that ``bpe compare --output`` wrote.

    Raises:
        InputError: the file cannot be read or holds no comparison.
    """
    try:
        value = json.loads(storage.read(path))
    except ValueError as error:
        raise InputError(f"{path}: not a comparison: {error}") from error
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise InputError(f"{path}: not a comparison: bpe compare --output writes one")
    if value.get("version") != VERSION:
        raise InputError(
            f"{path}: a comparison of version {value.get('version')}, not {VERSION}: use the "
            "release of beam-bpe that wrote it, or compare again"
        )
    return value
