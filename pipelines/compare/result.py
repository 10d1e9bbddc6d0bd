"""The result of a comparison: put together from what workers found, written and read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.compare.measures import USED_GROUPS, GroupTotals, Measures, without_used
from pipelines.compare.pieces import Difference, describe_example
from pipelines.compare.steps import TOTAL, SplitFailures, Totals, check_groups, group_name
from pipelines.corpus.reading import check_failures
from pipelines.errors import InputError
from pipelines.output.names import DEAD_LETTERS, parse_part, read_json_object
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe import Tokenizer
    from pipelines.compare.plan import CompareJob, Subject

KIND = "comparison"
VERSION = 1
_SHOWN_FAILURES = 10


def comparison(
    results: Iterable[Totals | tuple[Difference, ...] | SplitFailures],
    job: CompareJob,
    *,
    subject: Subject,
    tokenizers: Sequence[Tokenizer],
) -> dict[str, Any]:
    """Put the result together, as JSON values; the order of what comes in does not matter.

    Args:
        results: totals of groups, differences by shard, and bad records by split.
        job: what was done.
        subject: what was compared.
        tokenizers: loaded.

    Raises:
        RecordError: over all splits, more bad records than the job may set aside.
        ConfigError: there are too many groups.
        JobError: the runner lost something.
    """
    measures = (Measures(),) * len(tokenizers)
    groups: dict[str, GroupTotals] = {TOTAL: GroupTotals(measures=measures)}
    found = [Difference()] * (len(tokenizers) - 1)
    records = 0
    for result in results:
        if isinstance(result, SplitFailures):
            records += result.records
        elif isinstance(result, Totals):
            groups[result.key] = groups.get(result.key, GroupTotals()) + result.totals
        else:
            both = zip(found, result, strict=True)
            found = [one.joined(other, job.examples) for one, other in both]
    total = groups.pop(TOTAL)
    check_groups(job.by, len(groups))
    dead = _dead_letters(job, records, total.documents)
    ordered = sorted(groups.items(), key=lambda item: (-item[1].bytes, item[0]))
    if len(groups) > USED_GROUPS:  # it may be known of some of them
        ordered = [(key, without_used(of)) for key, of in ordered]
    return {
        "kind": KIND,
        "version": VERSION,
        "tokenizers": [
            {
                "name": named.name,
                "path": named.path,
                "vocab_size": len(tokenizer),
                "pretokenizer": str(tokenizer.pretokenizer),
                "model": type(tokenizer.model).__name__,
            }
            for named, tokenizer in zip(subject.tokenizers, tokenizers, strict=True)
        ],
        "inputs": [{"name": name, "size": size} for name, size in subject.inputs],
        "by": job.by,
        "failures": records,
        "bad_records": dead,
        "total": total.to_json(),
        "groups": [{"name": group_name(key), **of.to_json()} for key, of in ordered],
        "differences": [
            {
                "first": job.names[0],
                "second": job.names[i + 1],
                "pieces_with_fewer_tokens": one.fewer,
                "pieces_with_more_tokens": one.more,
                "pieces_with_as_many_tokens": one.same,
                "examples": [
                    describe_example(example, (tokenizers[0], tokenizers[i + 1]))
                    for example in one.examples
                ],
            }
            for i, one in enumerate(found)
            if job.examples
        ],
    }


def _dead_letters(job: CompareJob, records: int, documents: int) -> list[dict[str, Any]]:
    """The first bad records: where they are, and why they are bad."""
    if not records:
        return []
    folder = join(job.directory, DEAD_LETTERS)
    files = [f"{DEAD_LETTERS}/{entry.name}" for entry in storage.entries(folder)]
    files = [file for file in files if parse_part(file)]
    check_failures(records, job.reading, files, documents=documents)
    shown: list[dict[str, Any]] = []
    for file in files:
        for line in storage.read(join(job.directory, file)).splitlines():
            if len(shown) == _SHOWN_FAILURES:
                return shown
            letter = json.loads(line)
            shown.append({key: letter[key] for key in ("file", "unit", "place", "reason")})
    return shown


def is_comparison(path: str) -> bool:
    """Whether a file says that it is a comparison; its name ends with ``.json`` then."""
    value = read_json_object(path) if path.endswith(".json") else None
    return value is not None and value.get("kind") == KIND


def read_comparison(path: str) -> dict[str, Any]:
    """Read a file that ``bpe compare --output`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    try:
        value = json.loads(storage.read(path))
    except ValueError as error:
        raise InputError(f"{path}: not a comparison: {error}") from error
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise InputError(f"{path}: not a comparison: bpe compare --output writes one")
    if value.get("version") != VERSION:
        raise InputError(f"{path}: a comparison of version {value.get('version')}, not {VERSION}")
    return value
