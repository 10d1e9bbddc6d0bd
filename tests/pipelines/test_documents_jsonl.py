"""The core's reading of JSON lines against ``json.loads``, and the error of a bad line."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bpe import _native
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.documents.jsonl import MAX_DEPTH, parse_line
from tests.examples import examples
from tests.pipelines.corpus_files import Found, read, whole

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jsonl") / "f.jsonl"


def read_line(path: Path, line: bytes, **options: Any) -> Found:
    path.write_bytes(line)
    return read(whole(path, "jsonl"), options=ReadOptions(**options))


def by_dots(record: Any, name: str) -> Any:
    """The value of a field; None where there is no such field."""
    if name in record:
        return record[name]
    for part in name.split("."):
        record = record.get(part) if isinstance(record, dict) else None
    return record


class Number(str):
    """A number, as it is written."""

    __slots__ = ()


def by_loads(line: bytes, text_field: str, id_field: str | None) -> tuple[str, str | None] | None:
    """The whole rule again, in the plainest words: (text, id), or None for a bad line."""

    def unique(members: list[tuple[str, object]]) -> dict[str, object]:
        if len({name for name, _ in members}) < len(members):
            raise ValueError
        return dict(members)

    hooks: dict[str, Any] = {"parse_int": Number, "parse_float": Number}
    try:
        record = json.loads(line.decode("utf-8"), **hooks, object_pairs_hook=unique)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    text, id_ = by_dots(record, text_field), by_dots(record, id_field or "id")
    if isinstance(text, Number):
        return None
    if id_ is None and id_field is None:
        return (text, None) if is_text(text) else None
    if not (is_text(text) and is_text(id_)):
        return None
    return text, "0" if isinstance(id_, Number) and id_ == "-0" else id_[:]


def is_text(value: object) -> bool:
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def compare(
    path: Path,
    lines: list[bytes],
    id_field: str | None = None,
    *,
    text_field: str = "text",
    block_bytes: int = 4 << 20,
) -> None:
    """Read a file of these lines; compare each with the rule, and with `parse_line`."""
    options = ReadOptions(text_field=text_field, id_field=id_field, block_bytes=block_bytes)
    path.write_bytes(b"\n".join(lines))
    found = read(whole(path, "jsonl"), options=options)
    documents, bad, place = [], [], 0
    for line in lines:
        if line.strip(b" \t\r"):
            if expected := by_loads(line, text_field, id_field):
                text, id_ = expected
                documents.append((f"f.jsonl:{place}" if id_ is None else id_, text, place))
                assert parse_line(line, options).text == text
            else:
                bad.append(line)
        place += len(line) + 1
    assert found.documents == documents
    assert [record.raw for record in found.bad] == bad
    for record in found.bad:
        with pytest.raises(ValueError, match=re.escape(record.reason)):
            parse_line(record.raw, options)


RIGHT_ESCAPES = [
    *(r"\n", r"\"", r"\\", r"\/", r"\b", r"\f", r"\r", r"\t", r"\u0041", r"\u00e9", r"\u20AC"),
    *(r"\ud835\udd18", r"\uD835\uDD18", r"\u0000", r"\ufffe", r"\ud7ff\ue000"),
]
HALF_ESCAPES = [r"\ud835", r"\udd18", r"\ud835\ud835\udd18", r"\udd18\ud835", r"\ud835\n"]
WRONG_ESCAPES = [
    *(r"\u12", r"\u12g4", r"\x41", "\\", r"\U0041", r"\u 123", r"\u+123", r"\ud835\u", "\\" * 3),
]
RIGHT_NUMBERS = ["-0", "0", "1.5e+3", "1E5", "1e400", "NaN", "-Infinity", "9" * 5000, "-0.0"]
WRONG_NUMBERS = [
    *("00", "01", "-01", "1.", ".5", "1e", "1e+", "-", "+1", "-NaN", "nan", "1_0", "0x10", "-.5"),
]
STRAY = ["x", "{}", ",", "]", "[", "{", '"', "'", "\x00", "\t", "\x0b", "\u00a0", "True", "nul"]
Members = st.SearchStrategy[list[str]]
CHARACTERS = st.characters(min_codepoint=32, exclude_categories=["Cs"], exclude_characters='"\\')


def braced(*parts: list[str]) -> str:
    """An object of these members."""
    return "{" + ",".join(chain.from_iterable(parts)) + "}"


def json_lines() -> st.SearchStrategy[str]:
    """Objects of JSON, out of its pieces, that ``json.loads`` reads."""
    spaces = st.sampled_from(["", "", "", " ", "\t", "\r", "  "])
    escapes = st.sampled_from([*RIGHT_ESCAPES, *HALF_ESCAPES])
    bodies = st.lists(st.one_of(CHARACTERS, CHARACTERS, escapes), max_size=8).map("".join)
    strings = bodies.map('"{}"'.format)
    numbers = st.integers().map(str) | st.floats().map(json.dumps) | st.sampled_from(RIGHT_NUMBERS)
    scalars = st.one_of(strings, numbers, st.sampled_from(["true", "false", "null"]))

    def members(keys: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> Members:
        pairs = st.tuples(spaces, keys, spaces, spaces, values, spaces)
        return st.lists(pairs.map(lambda pair: "{}{}{}:{}{}{}".format(*pair)), max_size=3)

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        arrays = st.lists(inner, max_size=3).map(", ".join).map("[{}]".format)
        return arrays | members(strings, inner).map(braced)

    values = st.recursive(scalars, grown, max_leaves=5)
    keys = st.sampled_from(['"text"', '"id"', '"other"', '"te\\u0078t"', '"Text"', '""'])
    others = members(keys | strings, values)
    texts = st.one_of(strings, strings, values).map('"text": {}'.format)
    return st.builds(braced, others, st.lists(texts, max_size=2), others)


right_lines = json_lines().map(str.encode)
WRONG = [piece.encode() for piece in (*WRONG_ESCAPES, *WRONG_NUMBERS, *STRAY)]
# Right ones, of which some bytes have become others.
wrong_lines = st.tuples(
    *(right_lines, st.integers(0, 60), st.integers(0, 3)),
    st.sampled_from(WRONG) | st.binary(max_size=2),
).map(lambda parts: parts[0][: parts[1]] + parts[3] + parts[0][parts[1] + parts[2] :])
lines = st.one_of(right_lines, wrong_lines).map(
    # A byte order mark is skipped at the start of a file only.
    lambda line: line.replace(b"\n", b" ").replace(b"\xef\xbb\xbf", b" \xef\xbb\xbf")
)


@examples(400)
@given(
    lines=st.lists(lines, min_size=1, max_size=4),
    id_field=st.sampled_from([None, None, "id", "other"]),
    block_bytes=st.integers(1, 200),
)
@example(
    lines=[
        b'{"text":1,"text":"a"}',
        b'{"text":"a","text":1}',
        b'{"text":"a","id":"x","id":null}',
        b'{"text":"a"}\x00',
        b'{"text":"a"} {"text":"b"}',
        b'\xef\xbb\xbf{"text":"a"}x',
        b'{"text":"\\',
        b'{"text":"\\u',
    ],
    id_field=None,
    block_bytes=200,
)
def test_the_core_reads_lines_as_json_loads_does(
    path: Path, lines: list[bytes], id_field: str | None, block_bytes: int
) -> None:
    compare(path, lines, id_field, block_bytes=block_bytes)


def objects() -> st.SearchStrategy[str]:
    """JSON objects in objects, in which keys repeat; each has a text at ``d.text``."""
    keys = st.sampled_from(["a", "b", "c", "a.b", "a.b.c", "b.c", ""]).map(json.dumps)
    scalars = st.one_of(
        st.text("xyé\n", max_size=3).map(json.dumps), st.sampled_from(["null", "7", "[{}]", "{}"])
    )

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        members = st.lists(st.tuples(keys, inner).map(": ".join), max_size=4)
        return members.map(lambda some: "{" + ", ".join(['"d": {"text": "t"}', *some]) + "}")

    return grown(st.recursive(scalars, grown, max_leaves=8))


@given(
    line=objects(),
    text_field=st.sampled_from(["d.text", "a", "a.b", "a.b.c", "b.c", "a.", "."]),
    id_field=st.sampled_from([None, "a", "a.b", "a.b.c", "b.c"]),
)
def test_a_field_in_objects_is_found_by_its_path(
    path: Path, line: str, text_field: str, id_field: str | None
) -> None:
    compare(path, [line.encode()], id_field, text_field=text_field)


def test_the_core_itself_follows_a_path() -> None:
    line = b'{"a": {"b": "x"}}'
    assert not len(_native.read_json_lines(line, 0, b"a.b", b"id", False)[-1])


def test_what_is_special_is_found_at_any_place(path: Path) -> None:
    """The core reads sixteen bytes at a time."""
    odd = ["\x00", "\x1f", " ", "\x7f", "\x80", "\u00e9", "\u0439", "\U0001f600", '"', ""]
    raw = [b"\x80", b"\xc3", b"\xff", b"\xed\xa0\x80", b"\xe2\x82", b"\xf0\x9f\x98"]
    pieces = [piece.encode() for piece in [*RIGHT_ESCAPES, *HALF_ESCAPES, *WRONG_ESCAPES, *odd]]
    bodies = [
        b"a" * before + piece + b"b" * after
        for before in range(34)
        for piece in [*pieces, *raw]
        for after in (0, 15, 20)
    ]
    forms = (b'{"id":"t","text":"%b"}', b'{"id":"%b","text":"x"}', b'{"id":"k","text":"x","%b":1}')
    values = [piece.encode() for piece in [*RIGHT_NUMBERS, *WRONG_NUMBERS, *STRAY]]
    places = (b'{"id":%b,"text":"x"}', b'{"text":"x","n":[1,%b ]}', b'{"text":"x","n":{"m":%b}} ')
    lines = [form % body for form in forms for body in bodies]
    compare(path, lines + [place % value for place in places for value in values])


def nested(depth: int) -> bytes:
    """A record whose brackets nest ``depth`` deep, its own among them."""
    inner = "[" * (depth - 1) + "]" * (depth - 1)
    return f'{{"n": {inner}, "text": "a [[[ {{{{ ]"}}'.encode()


def test_brackets_nest_to_a_stated_depth(path: Path) -> None:
    for member in (b'"n"', b'"x": NaN, "n"'):  # which the core leaves undecided
        deepest, deeper = (
            nested(depth).replace(b'"n"', member) for depth in (MAX_DEPTH, MAX_DEPTH + 1)
        )
        assert read_line(path, deepest).texts == ["a [[[ {{ ]"]
        (bad,) = read_line(path, deeper).bad
        assert f"{MAX_DEPTH} deep" in bad.reason


@pytest.mark.parametrize("line", [b"[" * 2_000_000, nested(1_000_000), b'{"a":' * 500_000])
def test_a_million_brackets_are_one_bad_record(path: Path, line: bytes) -> None:
    found = read_line(path, b'{"text":"a"}\n' + line + b'\n{"text":"b"}\n')
    assert found.texts == ["a", "b"]
    assert [record.size for record in found.bad] == [len(line)]


def test_fields_can_have_any_name(path: Path) -> None:
    for field in ("content", "a b", "日本", 'quo"te', "back\\slash", "", "\x00", "a.b"):
        line = json.dumps({"text": "wrong", field: "right"}, ensure_ascii=False).encode()
        if field:
            assert read_line(path, line, text_field=field).texts == ["right"]
        assert read_line(path, line, id_field=field, text_field="text").ids == ["right"]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_duplicate_is_found_among_many_keys(path: Path, depth: int) -> None:
    names = [f"key {i}" for i in range(3000)]
    for last in ("another", "key 1500"):
        members = ",".join(f'"{name}":{{"key 1":[{{"key 2":0}}]}}' for name in [*names, last])
        inner = "{" + members + "}"
        line = '{"text":"a","x":' + "[" * depth + inner + "]" * depth + "}"
        found = read_line(path, line.encode())
        assert found.texts == (["a"] if last == "another" else [])
        assert all("duplicate key 'key 1500'" in bad.reason for bad in found.bad)
        assert len(found.documents) + len(found.bad) == 1


BAD_LINES = [
    (b'{"text":"a","text":"b"}', "duplicate key 'text' in one object"),
    (b'{"text":"a","x":[{"n":1,"m":2,"n":1}]}', "duplicate key 'n' in one object"),
    (b'{"text":"a","meta":{"k":1,"\\u006b":2}}', "duplicate key 'k'"),
    (b'{"text":"a"}}', "not one JSON value"),
    (b'{"text":"a"}{"text":"b"}', "Extra data"),
    (b"plain text", "not one JSON value"),
    (b'{"body":"a","n":1}', "no field 'text': the record has 'body', 'n'"),
    (b'{"' + b"k" * 500 + b'":1}', "the record has '" + "k" * 80 + "' (see"),
    (b"{}", "no fields"),
    (b"{", "looks like pretty-printed JSON"),
    (b'{"text":"a","id":true}', "id field 'id' is true, neither a string nor a number"),
    (b'{"text":"a","id":[1]}', "id field 'id' is an array"),
    (b'{"text":"a","id":NaN}', "id field 'id' is nan"),
    (b'{"text":"a","id":"\\ud800"}', "id field 'id' holds half a surrogate pair"),
    (b'{"text":null}', "field 'text' is null"),
    (b'{"text":5}', "field 'text' is a number"),
    (b'{"text":{"text":"a"}}', "field 'text' is an object"),
    (b'["text"]', "an array where an object was expected"),
    (b'"text"', "a string where an object was expected"),
    (b'{"text":"a\\ud800b"}', "half a surrogate pair (U+D800 at 1)"),
    (b'{"text":"a\xffb"}', "malformed UTF-8 at byte 10 of the record (0xff"),
    (b'{"text":"a","x":"\xed\xa0\x80"}', "malformed UTF-8 at byte 17"),
    (b'{"text":"tab\there"}', "Invalid control character"),
    ('\ufeff{"text":"a"}'.encode(), "BOM"),
]
BAD_PATHS = [
    (b'{"body":1}', "no field 'data.text': the record has 'body' (see `text_field`)"),
    (b'{"data":{"body":1}}', "no field 'data.text': 'data' has 'body' (see `text_field`)"),
    (b'{"data":{}}', "no field 'data.text': 'data' has no fields"),
    (b'{"data":[{"text":"x"}]}', "no field 'data.text': 'data' is an array, not an object"),
    (b'{"data":{"text":5}}', "field 'data.text' is a number, not a string"),
    (b'{"data":{"text":"x"},"data.text":null}', "field 'data.text' is null, not a string"),
]


@pytest.mark.parametrize(
    ("field", "line", "reason"),
    [*(("text", *one) for one in BAD_LINES), *(("data.text", *one) for one in BAD_PATHS)],
)
def test_a_bad_line_is_told_what_is_wrong(path: Path, field: str, line: bytes, reason: str) -> None:
    before, after = (json.dumps({field: text}).encode() for text in ("before", "after"))
    found = read_line(path, b"%b\n%b\r\n%b\n" % (before, line, after), text_field=field)
    assert found.texts == ["before", "after"]
    (bad,) = found.bad
    assert reason in bad.reason
    assert (bad.name, bad.path, bad.place) == ("f.jsonl", str(path), len(before) + 1)
    assert bad.raw == line


def test_an_id_that_is_missing(path: Path) -> None:
    line = b'{"text": "x", "meta": {"no": 3}}\n'
    assert read_line(path, line, id_field="meta.no").ids == ["3"]
    (bad,) = read_line(path, line, id_field="meta.id").bad
    assert bad.reason.startswith("id field 'meta.id' is missing: 'meta' has 'no' (name another")


@pytest.mark.parametrize("deep", [MAX_DEPTH, MAX_DEPTH + 1])
def test_a_path_may_be_as_deep_as_objects(path: Path, deep: int) -> None:
    line = ('{"a": ' * deep + '"x"' + "}" * deep).encode()
    found = read_line(path, line, text_field=".".join(["a"] * deep))
    assert (len(found.texts), len(found.bad)) == (deep <= MAX_DEPTH, deep > MAX_DEPTH)
