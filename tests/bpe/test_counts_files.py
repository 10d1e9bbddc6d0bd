from __future__ import annotations

import hashlib
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from bpe._native import stable_hash
from bpe.counting import count_pretokens
from bpe.counts import PretokenCounts
from bpe.counts.files import read_part
from bpe.counts.manifest import CountedInput, CountsManifest, CountsPart
from bpe.errors import CountsError
from bpe.files import CHECKSUM, with_checksum

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


@pytest.mark.parametrize(("shards", "track_order"), [(1, False), (1, True), (5, True), (16, False)])
def test_what_is_saved_is_loaded(tmp_path: Path, shards: int, track_order: bool) -> None:
    counts = PretokenCounts.from_items(
        {b"the": 2**62, b"of": 2**31, b"\xff\0": 1, "日本".encode(): 3, b"x" * 40: 1},
        pattern=r"\s+|\w+",
        special_tokens=["<s>"],
        track_order=track_order,
    )
    object.__setattr__(counts, "inputs", (CountedInput("a/é.txt", 5), CountedInput("\udcff", 1)))
    counts.save(tmp_path / "new" / "counts", shards=shards)
    loaded = PretokenCounts.load(str(tmp_path / "new" / "counts"))
    assert (loaded, loaded.inputs) == (counts, counts.inputs)


def test_parts_are_plain_parquet(saved: Path, counts: PretokenCounts) -> None:
    names = [f"part-0000{shard}-of-00003.parquet" for shard in range(3)]
    assert sorted(path.name for path in saved.iterdir()) == ["data", "manifest.json"]
    assert sorted(path.name for path in saved.glob("data/*")) == names
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["totals"]["documents"] == 5
    assert manifest["totals"]["bytes"] == sum(len(text.encode()) for text in TEXTS)
    assert manifest["totals"]["distinct_pretokens"] == len(counts)
    file = pq.ParquetFile(saved / "data" / names[0])
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


def test_the_hash_that_deals_out_pretokens_never_changes() -> None:
    words = (b"a", b"the" * 20)
    assert [*map(stable_hash, words)] == [0x82A2A958A9BECE5B, 0x8DE0FFD91BFE3769]


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
        (tmp_path, "other files than counts, like 'counts/data/"),
        (saved, r"other files than counts, like 'notes\.txt'"),
        (tmp_path / "encoded", "manifest of 'encoded', not of 'counts'"),
    ):
        with pytest.raises(CountsError, match=message):
            count_pretokens(["a"]).save(directory)
    with pytest.raises(FileExistsError):
        count_pretokens(["a"]).save(tmp_path / "notes.txt")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("shards", [0, 100_000])
def test_a_wrong_number_of_shards_makes_no_directory(tmp_path: Path, shards: int) -> None:
    with pytest.raises(CountsError, match=f"shards={shards} is not between 1 and 99999"):
        count_pretokens(TEXTS).save(tmp_path / "counts", shards=shards)
    assert not (tmp_path / "counts").exists()


def test_a_save_that_fails_leaves_the_counts_before(saved: Path, counts: PretokenCounts) -> None:
    blocked = saved / "data" / "part-00001-of-00002.parquet"
    blocked.mkdir()
    with pytest.raises(OSError, match="part-00001"):
        count_pretokens(["other"]).save(saved, shards=2)
    assert PretokenCounts.load(saved) == counts
    blocked.rmdir()
    test_saving_again_replaces_counts(saved)


def test_a_first_save_that_was_killed_is_made_again(saved: Path) -> None:
    part = min(saved.glob("data/*"))
    part.rename(part.with_name(f".{part.name}.{'0a' * 16}.tmp"))
    (saved / "manifest.json").unlink()
    test_saving_again_replaces_counts(saved)


def test_a_folder_of_parts_that_is_a_link_is_refused(saved: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    (saved / "data").rename(away)
    (saved / "data").symlink_to(away)
    before = sorted(away.iterdir())
    with pytest.raises(CountsError, match="other files than counts, like 'data'"):
        count_pretokens(TEXTS).save(saved, shards=2)
    assert sorted(away.iterdir()) == before


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
        (data[:-1], r"has \d+ bytes with the SHA-256 \w+, the manifest says \d+ bytes with"),
        (data[:50] + bytes([data[50] ^ 1]) + data[51:], "truncated, damaged or of another run"),
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
    good, other, _ = (path.read_bytes() for path in sorted(saved.glob("data/*")))
    rows, of_other = (pq.read_metadata(io.BytesIO(data)).num_rows for data in (good, other))
    for data, named, message in (
        (b"PAR1" * 100, rows, "cannot be read as Parquet"),
        (good[:12] + bytes([good[12] ^ 255]) + good[13:], rows, "cannot be read as Parquet"),
        (other, of_other, "does not belong to this part"),
        (good, rows + 1, f"has {rows} rows, the manifest says {rows + 1}"),
    ):
        part = CountsPart("here", named, len(data), hashlib.sha256(data).hexdigest())
        with pytest.raises(CountsError, match=f"^here.* {message}"):
            read_part(data, part, shard=0, shards=3, where="here")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "tokenizer"}, "manifest of 'tokenizer', not of 'counts'"),
        ({"version": 1}, "has version 1, this library reads 3"),
        ({"scale": 0}, "scale is 0, it must be an int from 1 upwards"),
        ({"normalizer": ["nfx"]}, "unknown normalizer 'nfx'; valid: nfc, nfd"),
        ({"never_split": ["("]}, "does not compile"),
        ({"pretokenizer": "gpt3"}, "unknown pre-tokenizer 'gpt3'"),
        ({"pretokenizer": None}, "either a name or a pattern"),
        ({"special_tokens": ["a", "a"]}, "'a' is given twice"),
        ({"order_span": 1}, "order_span is 1"),
        ({"order_span": None}, "order_span is None, but the counts know the order"),
        ({"totals": {"documents": -1}}, "totals.documents must be an integer from 0, got -1"),
        ({"totals": {"pretokens": 1}}, r"counts add up to \d+, the totals say 1 pre-tokens"),
        ({"inputs": [{"name": "a"}]}, r"inputs\[0\] has no field 'size' \(its fields: 'name'\)"),
        ({"inputs": [{"name": "a", "size": 0}, []]}, r"inputs\[1\] must be an object, got \[\]"),
        ({"pattern": 1}, "pattern must be a string or a list or null, got 1"),
        ({"pattern": ["a", 1]}, r"pattern\[1\] must be a string, got 1"),
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
    manifest = json.loads((saved / "manifest.json").read_text())
    totals = manifest["totals"] | fields.get("totals", {})
    changed = with_checksum(manifest | fields | {"totals": totals})
    (saved / "manifest.json").write_text(json.dumps(changed))
    with pytest.raises(CountsError, match=message) as caught:
        PretokenCounts.load(saved)
    assert str(saved) in str(caught.value)


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


def test_a_manifest_without_its_checksum_is_refused(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    assert len(manifest.pop(CHECKSUM)) == 64
    (saved / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CountsError, match="checksum mismatch"):
        PretokenCounts.load(saved)
