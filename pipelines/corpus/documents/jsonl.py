"""Read JSON lines: each line is an object with its text in one field.

A line means the same as to Python's ``json.loads``: escapes become characters, ``NaN`` is let
pass where it does not matter. Four differences: a duplicate key in an object is an error, integers
may have any number of digits, brackets nest at most `MAX_DEPTH` deep, and a byte order mark at the
start of the file is skipped. Lines of white space are no records.

The core reads the lines it is sure of; ``json.loads`` judges the others, one at a time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe import _native
from bpe._arrow import binary_rows, int64_array
from pipelines.corpus.documents import json_values
from pipelines.corpus.documents.block import (
    DEFAULT_ID_FIELD,
    Block,
    ReadOptions,
    malformed,
    text_block,
)
from pipelines.corpus.documents.json_values import (
    Digits,
    field_value,
    integer,
    kind_of,
    lone_surrogate,
)
from pipelines.corpus.documents.lines import whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.corpus.documents.lines import Lines
    from pipelines.corpus.splits import FileRange

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_DEPTH = 200  # JsonLine::kMaxDepth in the core
_SAMPLE_BYTES, _SAMPLE_BLOCKS = 1 << 20, 4
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def read_jsonl(source: FileRange, options: ReadOptions) -> Iterator[Block]:
    """Read the documents whose lines begin in ``source``."""
    for lines in whole_lines(source, options):
        yield _block(source, options, lines)


def first_records(source: FileRange) -> Iterator[dict[str, Any]]:
    """Yield the first records of a file that are objects."""
    options = ReadOptions(block_bytes=_SAMPLE_BYTES)
    for lines in islice(whole_lines(source, options), _SAMPLE_BLOCKS):
        for line in lines.data.removeprefix(BYTE_ORDER_MARK).split(b"\n"):
            try:
                record = json.loads(line, parse_int=integer)
            except (ValueError, RecursionError):
                continue  # a bad record, when it is read
            if isinstance(record, dict):
                yield record


@dataclass(frozen=True)
class JsonDocument:
    """A record that is a document; the id is None if the record has no id."""

    text: str
    id: str | None


def parse_line(line: bytes, options: ReadOptions) -> JsonDocument:
    """Parse one line with ``json.loads``; the core must agree on the lines that it reads itself.

    Raises:
        ValueError: the line is no document; the message says why.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise ValueError(malformed(line)) from None
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
        raise ValueError(f"brackets nest more than {MAX_DEPTH} deep: flatten the record")
    try:
        record = json.loads(
            text, parse_int=Digits, parse_float=Digits, object_pairs_hook=_without_duplicates
        )
    except json.JSONDecodeError as error:
        if text.strip()[-1:] in ("{", "["):
            raise ValueError(
                f"{text.strip()!r:.80} begins a JSON value that goes on in the next line: this "
                "looks like pretty-printed JSON, and each line must be a whole object (jq -c '.[]' "
                "makes such lines of an array, jq -c . of objects)"
            ) from None
        raise ValueError(
            f"not one JSON value: {error.msg} (character {error.pos} of {len(text)}); a record "
            "is one object on one line"
        ) from None
    if isinstance(record, dict):
        return JsonDocument(_text(record, options.text_field), _id(record, options))
    raise ValueError(f"{kind_of(record)} where an object was expected")


def _without_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of these members.

    Raises:
        ValueError: two members have the same key.
    """
    found = dict(members)
    if len(found) < len(members):
        times = Counter(name for name, _ in members)
        name = next(name for name, number in times.items() if number > 1)
        raise ValueError(
            f"duplicate key {name!r:.80} in one object: nobody can say which value counts: rename "
            "or remove one"
        )
    return found


def _text(record: dict[str, Any], field: str) -> str:
    try:
        value = field_value(record, field)
    except LookupError as error:
        raise ValueError(f"no field {field!r}: {error.args[0]} (see `text_field`)") from None
    if isinstance(value, str) and not isinstance(value, Digits):
        if surrogate := lone_surrogate(value):
            raise ValueError(f"field {field!r} holds {surrogate}, which is no character")
        return value
    raise ValueError(f"field {field!r} is {kind_of(value)}, not a string (see `text_field`)")


def _id(record: dict[str, Any], options: ReadOptions) -> str | None:
    field, option = options.id_field, options.id_option
    name = DEFAULT_ID_FIELD if field is None else field
    value, missing = None, ""
    try:
        value = field_value(record, name)
    except LookupError as error:
        missing = str(error.args[0])
    if isinstance(value, str):
        surrogate = lone_surrogate(value)
        if not surrogate:
            return "0" if isinstance(value, Digits) and value == "-0" else str(value)
        problem = f"holds {surrogate}, which is no character"
    elif field is None and value is None:
        return None
    elif missing:
        problem = f"is missing: {missing}"
    else:
        found = repr(value) if isinstance(value, float) else kind_of(value)
        problem = f"is {found}, neither a string nor a number"
    kind = "group" if options.groups else "id"
    raise ValueError(f"{kind} field {name!r} {problem} (name another field with `{option}`)")


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for byte in _STRINGS.sub(b"", line):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _passthrough(
    options: ReadOptions, records: list[dict[str, Any]]
) -> tuple[tuple[pa.Array, ...], dict[int, str]]:
    """Return the columns that pass through, and by row the reasons why values do not fit."""
    problems: dict[int, str] = {}
    columns = []
    for wanted in options.keep:
        values, wrong = json_values.column(
            [record.get(wanted.name) for record in records], wanted.field
        )
        columns.append(values)
        problems = {**wrong, **problems}
    return tuple(columns), problems


def _block(source: FileRange, options: ReadOptions, lines: Lines) -> Block:
    place, data = lines.place, lines.data
    if place == 0 and data.startswith(BYTE_ORDER_MARK):
        place, data = 3, data[3:]
    text, text_offsets, ids, id_offsets, has_id, starts, undecided = _native.read_json_lines(
        data,
        place,
        options.text_field.encode(),
        (DEFAULT_ID_FIELD if options.id_field is None else options.id_field).encode(),
        options.id_field is not None,
    )
    places = memoryview(starts).cast("q")

    def line(row: int) -> bytes:
        begin = places[row] - place
        end = data.find(b"\n", begin)
        return data[begin:] if end < 0 else data[begin:end].removesuffix(b"\r")

    texts = binary_rows(text, text_offsets).view(pa.large_string())
    own_ids = pa.StringArray.from_buffers(
        len(places), *map(pa.py_buffer, (id_offsets, ids, has_id))
    )
    documents: dict[int, JsonDocument] = {}
    reasons: dict[int, str] = {}
    for row in memoryview(undecided).cast("q")[::3]:  # of row, begin and end
        try:
            documents[row] = parse_line(line(row), options)
        except ValueError as error:  # noqa: PERF203 - most lines are decided
            reasons[row] = str(error)
    if documents:
        mask = np.zeros(len(texts), bool)
        mask[[*documents]] = True
        parsed = pa.array(mask)
        for_texts = pa.array([document.text for document in documents.values()], texts.type)
        for_ids = pa.array([document.id for document in documents.values()], own_ids.type)
        texts = pc.replace_with_mask(texts, parsed, for_texts)
        own_ids = pc.replace_with_mask(own_ids, parsed, for_ids)
    passthrough: tuple[pa.Array, ...] = ()
    if options.keep:
        records = [
            {} if row in reasons else json.loads(line(row), parse_int=integer)
            for row in range(len(texts))
        ]
        passthrough, problems = _passthrough(options, records)
        reasons |= problems
    block = text_block(
        source,
        texts=texts,
        places=int64_array(starts),
        own_ids=own_ids if own_ids.null_count < len(own_ids) else None,
        bad=lines.bad,
        input_bytes=lines.input_bytes,
        passthrough=passthrough,
    )
    return block.without_bad(reasons, [source], line)
