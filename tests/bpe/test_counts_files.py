from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe._native import stable_hash
from bpe.counting import count_pretokens
from bpe.counts import PretokenCounts
from bpe.counts.manifest import CountedInput, CountsManifest
from bpe.errors import CountsError
from bpe.files import CHECKSUM, with_checksum
from tests.bpe.texts import byte_texts

if TYPE_CHECKING:
    from pathlib import Path

LETTERS = "dead-letters/part-00000-of-00001.jsonl"
TEXTS = ["the cat sat on the mat", "naïve café\r\n", "\0\0 日本語", "", "<s> the end <s>"]


@pytest.fixture
def counts() -> PretokenCounts:
    return count_pretokens(TEXTS, special_tokens=["<s>", "日本"], track_order=True)


@pytest.fixture
def saved(tmp_path: Path, counts: PretokenCounts) -> Path:
    counts.save(tmp_path / "counts", shards=3)
    return tmp_path / "counts"


@given(texts=st.lists(byte_texts, max_size=5), shards=st.integers(1, 5), track_order=st.booleans())
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], shards: int, track_order: bool
) -> None:
    directory = tmp_path_factory.mktemp("counts")
    counts = count_pretokens(texts, pretokenizer="cl100k", track_order=track_order)
    counts.save(directory, shards=shards)
    assert PretokenCounts.load(directory) == counts
    shutil.rmtree(directory)


def test_pattern_large_counts_and_inputs_are_saved(tmp_path: Path) -> None:
    counts = PretokenCounts.from_items(
        {b"the": 2**62, b"of": 2**31, b"\xff\0": 1},
        pattern=r"\s+|\w+",
        special_tokens=["<s>"],
        track_order=True,
    )
    object.__setattr__(counts, "inputs", (CountedInput("a/é.txt", 5), CountedInput("\udcff", 1)))
    counts.save(tmp_path / "new" / "counts")
    loaded = PretokenCounts.load(str(tmp_path / "new" / "counts"))
    assert (loaded, loaded.inputs) == (counts, counts.inputs)


def test_files_are_what_the_manifest_says(saved: Path, counts: PretokenCounts) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["totals"]["documents"] == 5
    assert manifest["totals"]["bytes"] == sum(len(text.encode()) for text in TEXTS)
    assert manifest["totals"]["distinct_pretokens"] == len(counts)
    names = [f"data/part-0000{shard}-of-00003.parquet" for shard in range(3)]
    assert [part["file"] for part in manifest["parts"]] == names
    assert sorted(path.name for path in saved.iterdir()) == ["data", "manifest.json"]
    assert sorted(path.name for path in saved.glob("data/*")) == [name[5:] for name in names]
    for shard, part in enumerate(manifest["parts"]):
        data = (saved / part["file"]).read_bytes()
        assert part["bytes"] == len(data)
        assert part["sha256"] == hashlib.sha256(data).hexdigest()
        table = pq.read_table(saved / part["file"])
        assert part["rows"] == len(table)
        keys = table["pretoken"].to_pylist()
        assert keys == sorted(keys)
        assert all(stable_hash(key) % 3 == shard for key in keys)


def test_parts_are_plain_parquet(saved: Path) -> None:
    file = pq.ParquetFile(saved / "data" / "part-00000-of-00003.parquet")
    assert [(field.name, str(field.type), field.nullable) for field in file.schema_arrow] == [
        ("pretoken", "binary", False),
        ("count", "int64", False),
        ("first_document", "int64", False),
        ("first_position", "int64", False),
    ]
    group = file.metadata.row_group(0)
    assert group.column(0).compression == "ZSTD"
    assert not group.column(0).has_dictionary_page
    assert group.column(0).statistics.min == min(file.read()["pretoken"].to_pylist())
    assert group.sorting_columns == (pq.SortingColumn(0),)


def test_the_same_counts_are_the_same_bytes(tmp_path: Path, saved: Path) -> None:
    halves = [
        count_pretokens(texts, special_tokens=["<s>", "日本"], track_order=True)
        for texts in (TEXTS[:2], TEXTS[2:])
    ]
    (halves[0] + halves[1]).save(tmp_path / "again", shards=3)
    PretokenCounts.load(saved).save(tmp_path / "loaded", shards=3)
    for path in saved.rglob("*.*"):
        name = path.relative_to(saved)
        assert (tmp_path / "again" / name).read_bytes() == path.read_bytes()
        assert (tmp_path / "loaded" / name).read_bytes() == path.read_bytes()


def test_keys_larger_than_a_page(tmp_path: Path) -> None:
    counts = PretokenCounts.from_items({b"x" * (1_000_000 + i): i + 1 for i in range(20)})
    counts.save(tmp_path / "counts", shards=2)
    assert PretokenCounts.load(tmp_path / "counts") == counts
    metadata = pq.read_metadata(tmp_path / "counts" / "data" / "part-00000-of-00002.parquet")
    assert metadata.serialized_size < 2_000


def test_saving_again_replaces_counts(saved: Path) -> None:
    other = count_pretokens(["other"])
    other.save(saved, shards=2)
    assert PretokenCounts.load(saved) == other
    assert len(list(saved.rglob("*.*"))) == 3


def test_saving_leaves_other_files_alone(tmp_path: Path, saved: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (saved / "notes.txt").write_text("mine")
    (tmp_path / "encoded").mkdir()
    (tmp_path / "encoded" / "manifest.json").write_text('{"kind": "encoded", "version": 1}')
    before = sorted(tmp_path.rglob("*"))
    for directory, message in (
        (tmp_path, "not empty and holds no finished counts"),
        (saved, r"other files than counts, like 'notes\.txt'"),
        (tmp_path / "encoded", "manifest of 'encoded', not of 'counts'"),
    ):
        with pytest.raises(CountsError, match=message):
            count_pretokens(["a"]).save(directory)
    with pytest.raises(FileExistsError):
        count_pretokens(["a"]).save(tmp_path / "notes.txt")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    directory = tmp_path / "counts"
    counts = count_pretokens(TEXTS)
    for shards in (0, 100_000):
        with pytest.raises(CountsError, match=f"shards={shards} is not between 1 and 99999"):
            counts.save(directory, shards=shards)
    assert not directory.exists()
    counts.save(directory, shards=4)
    before = sorted(directory.rglob("*"))
    blocked = directory / "data" / "part-00001-of-00002.parquet"
    blocked.mkdir()
    with pytest.raises(OSError, match="part-00001"):
        count_pretokens(["other"]).save(directory, shards=2)
    blocked.rmdir()
    assert sorted(directory.rglob("*")) == before
    assert PretokenCounts.load(directory) == counts


def test_a_folder_of_parts_that_is_a_link_is_refused(tmp_path: Path) -> None:
    directory, away = tmp_path / "counts", tmp_path / "away"
    counts = count_pretokens(TEXTS)
    counts.save(directory, shards=2)
    (directory / "data").rename(away)
    (directory / "data").symlink_to(away)
    before = sorted(away.iterdir())
    with pytest.raises(CountsError, match="data is a link"):
        counts.save(directory, shards=3)
    assert sorted(away.iterdir()) == before


def edit_manifest(directory: Path, **fields: Any) -> None:
    path = directory / "manifest.json"
    path.write_text(json.dumps(with_checksum({**json.loads(path.read_text()), **fields})))


def replace_part(directory: Path, data: bytes, *, rows: int | None = None) -> None:
    """Another first part, and a manifest that agrees with it."""
    manifest = json.loads((directory / "manifest.json").read_text())
    part = manifest["parts"][0]
    (directory / part["file"]).write_bytes(data)
    part.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    if rows is not None:
        manifest["totals"]["distinct_pretokens"] += rows - part["rows"]
        part["rows"] = rows
    edit_manifest(directory, parts=manifest["parts"], totals=manifest["totals"])


def parquet_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_no_counts_there(tmp_path: Path, saved: Path) -> None:
    for directory in (tmp_path, tmp_path / "nowhere", saved / "manifest.json"):
        with pytest.raises(CountsError, match=r"manifest\.json is missing: .* holds no counts"):
            PretokenCounts.load(directory)


def test_a_part_is_missing_truncated_damaged_or_of_another_run(tmp_path: Path, saved: Path) -> None:
    part = saved / "data" / "part-00001-of-00003.parquet"
    data = part.read_bytes()
    count_pretokens(["another run"]).save(tmp_path / "other", shards=3)
    for damaged, message in (
        (None, "is missing"),
        (data[:-1], r"has \d+ bytes, the manifest says \d+"),
        (data[:50] + bytes([data[50] ^ 1]) + data[51:], "has not the SHA-256 of the manifest"),
        ((tmp_path / "other" / "data" / part.name).read_bytes(), "of another run"),
    ):
        part.unlink()
        if damaged is not None:
            part.write_bytes(damaged)
        with pytest.raises(CountsError, match=rf"part-00001-of-00003\.parquet.* {message}"):
            PretokenCounts.load(saved)
        part.write_bytes(data)
    PretokenCounts.load(saved)


def test_damage_that_the_manifest_agrees_with(saved: Path) -> None:
    part = saved / "data" / "part-00000-of-00003.parquet"
    good = part.read_bytes()
    table = pq.read_table(part)
    cases: list[tuple[bytes, str]] = [
        (b"", "cannot be read as Parquet"),
        (b"PAR1" * 100, "cannot be read as Parquet"),
        (good[:12] + bytes([good[12] ^ 255]) + good[13:], "cannot be read as Parquet"),
        (parquet_bytes(table[::-1]), "is not in byte order after"),
        (parquet_bytes(table.rename_columns(["word", *table.schema.names[1:]])), "word: binary"),
        (parquet_bytes(table.drop_columns(["first_document", "first_position"])), "lacks the colu"),
        (part.with_name("part-00001-of-00003.parquet").read_bytes(), "not belong to this part"),
    ]
    for data, message in cases:
        rows = None
        if data[:4] == b"PAR1" and "cannot be read" not in message:
            rows = pq.ParquetFile(pa.BufferReader(data)).metadata.num_rows
        replace_part(saved, data, rows=rows)
        with pytest.raises(CountsError, match=r"part-00000-of-00003\.parquet.*" + message):
            PretokenCounts.load(saved)
    replace_part(saved, good, rows=len(table) - 1)
    with pytest.raises(CountsError, match=rf"has {len(table)} rows, the manifest says"):
        PretokenCounts.load(saved)
    replace_part(saved, good, rows=len(table))
    PretokenCounts.load(saved)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "tokenizer"}, "manifest of 'tokenizer', not of 'counts'"),
        ({"version": 1}, "has version 1, this library reads 2 and 3"),
        ({"version": True}, "has version True, this library reads 2 and 3"),
        ({"scale": 0}, "scale is 0, it must be an int from 1 upwards"),
        ({"normalizer": ["nfx"]}, "unknown normalizer 'nfx'; valid: nfc, nfd"),
        ({"never_split": ["("]}, "does not compile"),
        ({"pretokenizer": "gpt3"}, "unknown pre-tokenizer 'gpt3'"),
        ({"pretokenizer": None}, "either a name or a pattern"),
        ({"special_tokens": ["a", "a"]}, "'a' is given twice"),
        ({"order_span": 1}, "order_span is 1"),
        ({"order_span": None}, "has the columns of order, the manifest says order_span=None"),
        ({"totals": {"documents": -1}}, "totals.documents must be an integer from 0, got -1"),
        ({"inputs": [{"name": "a"}]}, r"inputs\[0\] has no field 'size'"),
        ({"parts": []}, "names 0 parts"),
        (
            {"parts": [{"file": "../../x", "rows": 0, "bytes": 0, "sha256": ""}]},
            r"part 0 is '\.\./\.\./x', it must be 'data/part-00000-of-00001\.parquet'",
        ),
        (
            {"dead_letters": [{"file": "../x", "records": 0, "bytes": 0, "sha256": ""}]},
            r"dead letters cannot be '\.\./x'",
        ),
        (
            {"dead_letters": [{"file": LETTERS, "records": 1, "bytes": 0, "sha256": ""}]},
            "names 0 bad records, but its dead letters hold 1",
        ),
    ],
)
def test_a_manifest_that_is_wrong(saved: Path, fields: dict[str, Any], message: str) -> None:
    edit_manifest(saved, **fields)
    with pytest.raises(CountsError, match=message) as caught:
        PretokenCounts.load(saved)
    assert str(saved) in str(caught.value)


def test_totals_that_do_not_add_up(saved: Path) -> None:
    totals = json.loads((saved / "manifest.json").read_text())["totals"]
    for name, message in (
        ("pretokens", r"counts add up to \d+, the totals say \d+ pre-tokens"),
        ("distinct_pretokens", r"\d+ distinct pre-tokens, but its parts have \d+ rows"),
    ):
        edit_manifest(saved, totals={**totals, name: totals[name] + 1})
        with pytest.raises(CountsError, match=message):
            PretokenCounts.load(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", "1" * 5_000, "[" * 100_000, "\xff"])
def test_a_manifest_that_is_no_manifest(saved: Path, text: str) -> None:
    (saved / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(CountsError, match=r"manifest\.json is not (JSON|a JSON object)"):
        PretokenCounts.load(saved)


def test_any_flipped_bit_of_a_manifest_is_found(saved: Path) -> None:
    data = bytearray((saved / "manifest.json").read_bytes())
    for place in range(len(data)):
        bit = 1 << place % 5  # letters of another case in an escape are the same text
        data[place] ^= bit
        with pytest.raises(CountsError):
            CountsManifest.from_json(bytes(data), where="here", inputs=bytes)
        data[place] ^= bit
    CountsManifest.from_json(bytes(data), where="here", inputs=bytes)


def test_a_manifest_of_an_earlier_release_has_no_checksum(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    assert len(manifest.pop(CHECKSUM)) == 64
    manifest["totals"]["documents"] += 1  # nothing else tells
    (saved / "manifest.json").write_text(json.dumps(manifest))
    assert PretokenCounts.load(saved).totals.documents == manifest["totals"]["documents"]
