"""Rows for training, through whole jobs: encoded, verified, decoded, finished after a stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import bpe
from bpe.dropout import row_seeds
from pipelines.corpus.documents import ReadOptions, read_split
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.splits import plan_splits
from pipelines.encode.rows import without_ends
from pipelines.encode.steps import file_seed
from pipelines.errors import ConfigError
from pipelines.settings import EncodeSettings, RowSettings
from tests import jobs
from tests.pipelines.corpora import (
    END,
    MODES,
    Corpus,
    dead_letters,
    decoded,
    encode,
    encoded_manifest,
    write_jsonl,
)
from tests.pipelines.test_encode_job import large_tokenizer, rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("mode", MODES)
def test_all_numbers_of_a_mode_add_up(
    corpus: Corpus, model: Path, tokenizer: bpe.Tokenizer, tmp_path: Path, mode: str
) -> None:
    settings, ids = MODES[mode], tmp_path / "ids"
    summary = encode(corpus.inputs(), model, ids, encoding=settings)
    verified = jobs.verify(directory=str(ids), inputs=corpus.inputs())
    assert (verified.documents, verified.tokens) == (len(corpus.documents), summary.tokens)
    table = rows(ids)
    sizes = list(map(len, table["input_ids"].to_pylist()))
    assert table["num_tokens"].to_pylist() == sizes
    ends = (settings.prepend_token is not None) + (settings.append_token is not None)
    allowed = settings.allow_special and "all"
    expected = [
        len(tokenizer.encode(text, allowed_special=allowed)) + ends for text in corpus.texts
    ]
    assert sum(sizes) > sum(expected) if settings.dropout else sizes == expected
    assert encoded_manifest(ids)["totals"]["tokens"] == summary.tokens == sum(sizes)
    assert table.schema.field("input_ids").type.value_type == pa.type_for_alias(summary.id_type)
    assert decoded(ids) == corpus.documents


def test_dropout_depends_on_seed_file_and_place_alone(
    corpus: Corpus, model: Path, tokenizer: bpe.Tokenizer, tmp_path: Path
) -> None:
    settings = EncodeSettings(dropout=0.4, dropout_seed=7)
    found = []
    for size in (300, 5000):
        ids = tmp_path / str(size)
        encode(corpus.inputs(split_size=size), model, ids, encoding=settings)
        found.append(rows(ids)["input_ids"].to_pylist())
    assert found[0] == found[1] != tokenizer.encode_batch(corpus.texts)
    assert [tokenizer.decode(ids) for ids in found[0]] == corpus.texts
    # Of each document: splitmix64 of the seed, from the name of the file on by places.
    files = find_inputs(corpus.inputs()).files
    alone: list[list[int]] = []
    for split in plan_splits(files):
        for block in read_split(split, ReadOptions()):
            where = zip(block.file_indexes.to_pylist(), block.places.to_pylist(), strict=True)
            for row, (index, place) in enumerate(where):
                seeds = row_seeds(file_seed(7, files[index].name), 1, first=place)
                text = block.texts[row : row + 1]
                alone += tokenizer.encode_arrow(text, dropout=0.4, seeds=seeds).to_pylist()
    assert alone == found[0]


def test_characters_without_a_token_are_bad_records(letters: bpe.Tokenizer, tmp_path: Path) -> None:
    letters.save(tmp_path / "t.json", dialect="beam-bpe")
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["ab bc", "high", "cab", "ab?"])
    encode(corpus.inputs(max_failures=2), tmp_path / "t.json", tmp_path / "ids")
    assert rows(tmp_path / "ids")["id"].to_pylist() == ["d0", "d2"]
    first, second = dead_letters(tmp_path / "ids")
    assert ("'h'" in first["reason"], "'?'" in second["reason"]) == (True, True)


def test_special_tokens_are_recognised_where_they_are_allowed(model: Path, tmp_path: Path) -> None:
    texts = [f"a {END} b", "a\u2028b\u0085c\x0bd\r\ne", "\x00\ufeff"]
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", texts)
    id_, ids = bpe.Tokenizer.load(model).special_tokens[END], tmp_path / "ids"
    encode(corpus.inputs(), model, ids, encoding=EncodeSettings(allow_special=(END,)))
    assert id_ in rows(ids)["input_ids"].to_pylist()[0]
    jobs.verify(directory=str(ids), inputs=corpus.inputs())
    assert decoded(ids) == corpus.documents


def test_a_document_shorter_than_its_ends_is_refused() -> None:
    """Else its end would be taken from the document beside it."""
    lists = pa.array([[], [1, 1]], pa.list_(pa.uint16()))
    with pytest.raises(ValueError, match="shorter than the tokens"):
        without_ends(lists, prepend=1, append=None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropout": 1.5}, "`dropout` 1.5 is not between 0 and 1"),
        ({"dropout": float("nan")}, "`dropout` nan is not between 0 and 1"),
        ({"dropout_seed": 3}, "`dropout_seed` needs `dropout`"),
        ({"dropout": 0.1, "dropout_seed": -1}, "`dropout_seed` -1 is out of range: use 0 or more"),
        ({"id_type": "int64"}, "use one of auto, uint16, uint32"),
        ({"keep": ("",)}, "`keep` is empty"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EncodeSettings(**arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("", {"append_token": "<eos>"}, r"`append_token`: '<eos>' is not .* has '<\|end\|>'"),
        ("", {"prepend_token": "<bos>"}, "`prepend_token`: '<bos>' is not a special token"),
        ("", {"allow_special": ("all", "x")}, "`allow_special`: 'x' is not a special token"),
        ("large", {"id_type": "uint16"}, "the greatest id is 65791, and uint16 ends at 65535"),
        ("pieces", {"dropout": 0.1}, r"`dropout` 0.1: "),
    ],
)
def test_what_does_not_fit_the_tokenizer_is_refused_before_anything_is_written(
    corpus: Corpus, model: Path, tmp_path: Path, name: str, arguments: dict[str, Any], message: str
) -> None:
    if name == "large":
        large_tokenizer(model := tmp_path / "t.json")
    elif name == "pieces":
        counts = bpe.count_pretokens(["low lower"], pretokenizer="words", special_tokens=("[UNK]",))
        bpe.train(counts, vocab_size=20, model=bpe.WordPiece()).save(model := tmp_path / "t.json")
    with pytest.raises(ConfigError, match=message):
        encode(corpus.inputs(), model, tmp_path / "ids", encoding=EncodeSettings(**arguments))
    assert not (tmp_path / "ids").exists()


def test_only_what_is_given_tells_jobs_apart() -> None:
    """So an option that is new changes nothing for the jobs of before."""
    assert RowSettings().to_json() == ReadOptions().to_json() == {}
    assert RowSettings(allow_special=("all",)).to_json() == {"allow_special": ["all"]}
