"""Drift: the fit of a tokenizer to the documents of each window."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import equal_to
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from apache_beam.transforms.window import FixedWindows

import bpe
from pipelines import EncodeDocuments, MeasureDrift, TrainTokenizer
from pipelines.encode.drift import trained_bytes_per_token
from pipelines.errors import ConfigError
from pipelines.settings import CountsInput, InputSettings, TrainSettings
from tests.pipelines.beam_runs import assert_that, at_times, both_modes, pipeline
from tests.pipelines.corpora import count, train

if TYPE_CHECKING:
    from pathlib import Path

KNOWN, STRANGE = ["the lazy dog", "lazy dogs"], ["żółć źdźbło"]
ENCODED = {"text": "lazy", "input_ids": [1]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``counts``, and a ``model`` trained on them."""
    folder = tmp_path_factory.mktemp("drift")
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in KNOWN), "utf-8"
    )
    count(InputSettings(patterns=(str(folder / "corpus.jsonl"),)), folder / "counts")
    counts = CountsInput(directory=str(folder / "counts"))
    train(folder / "model", counts=(counts,), training=TrainSettings(vocab_size=270))
    return folder


def expected(folder: Path, texts: list[str]) -> dict[str, Any]:
    """The sums over the texts, one at a time."""
    path = folder / "model" / "tokenizer.json"
    tokenizer = bpe.Tokenizer.load(path)
    tokens = [token for text in texts for token in tokenizer.encode(text)]
    seen = dict(bpe.count_pretokens(KNOWN).items())
    found = dict(bpe.count_pretokens(texts).items())
    unseen = sum(count for pretoken, count in found.items() if pretoken not in seen)
    size = sum(len(text.encode()) for text in texts)
    return {
        "text_bytes": size,
        "tokens": len(tokens),
        "bytes_per_token": size / len(tokens),
        "trained_bytes_per_token": trained_bytes_per_token(str(path)),
        "single_byte_share": sum(len(tokenizer.tokens[one] or b"") == 1 for one in tokens)
        / len(tokens),
        "unseen_per_million": 1e6 * unseen / sum(found.values()),
    }


def row_of(row: Any, window: Any = beam.DoFn.WindowParam) -> tuple[float, dict[str, Any]]:
    """When the window begins, and the row."""
    return float(window.start), row.as_dict() if hasattr(row, "as_dict") else row._asdict()


@both_modes
def test_a_row_for_each_window(mode: str, folder: Path) -> None:
    path = str(folder / "model" / "tokenizer.json")
    elements: list[tuple[Any, float]] = [
        *zip(({"text": KNOWN[0]}, pa.table({"text": [KNOWN[1]]})), (1.0, 2.0), strict=True),
        *((beam.Row(text=text), 61.0) for text in STRANGE),
    ]
    with pipeline(mode) as p:
        rows = (
            p
            | at_times(*elements)
            | EncodeDocuments(tokenizer=path)
            | beam.WindowInto(FixedWindows(60))
            | MeasureDrift(tokenizer=path, baseline=str(folder / "counts"))
            | beam.Map(row_of)
        )
        assert_that(
            rows, equal_to([(0.0, expected(folder, KNOWN)), (60.0, expected(folder, STRANGE))])
        )


def test_a_tokenizer_by_value_without_a_baseline(folder: Path) -> None:
    tokenizer = bpe.Tokenizer.load(folder / "model" / "tokenizer.json")
    with pipeline() as p:
        texts = p | beam.Create([{"text": text} for text in KNOWN])
        rows = texts | EncodeDocuments(tokenizer=tokenizer) | MeasureDrift(tokenizer=tokenizer)
        made = expected(folder, KNOWN) | {
            "trained_bytes_per_token": None,  # a loaded file does not know its training
            "unseen_per_million": None,
        }
        assert_that(rows | beam.Map(lambda row: row.as_dict()), equal_to([made]))


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ({"text": "lazy", "input_ids": [1, 999]}, "token ids from 1 to 999"),
        ({"text": "lazy", "input_ids": [-1]}, "token ids from -1 to -1"),
        ({"text": None, "input_ids": []}, "field 'text' is NoneType"),
        (pa.table({"text": ["lazy", None], "input_ids": [[1], [2]]}), "column 'text' has nulls"),
    ],
)
def test_what_is_no_encoded_document_is_refused(element: Any, message: str, folder: Path) -> None:
    path = str(folder / "model" / "tokenizer.json")
    with pytest.raises(Exception, match=message), pipeline() as p:
        _ = p | beam.Create([element]) | MeasureDrift(tokenizer=path)


def test_slices_and_empty_tables_count_what_they_hold(folder: Path) -> None:
    path = str(folder / "model" / "tokenizer.json")
    tokenizer = bpe.Tokenizer.load(path)
    texts = ["strange", *KNOWN]
    ids = pa.array([tokenizer.encode(text) for text in texts], pa.list_(pa.uint16()))
    table = pa.table({"text": texts, "input_ids": ids})
    with pipeline() as p:
        rows = p | beam.Create([table.slice(1), table.slice(0, 0)]) | MeasureDrift(tokenizer=path)
        made = expected(folder, KNOWN) | {"unseen_per_million": None}
        assert_that(rows | beam.Map(lambda row: row.as_dict()), equal_to([made]))


def test_special_tokens_are_left_out(folder: Path) -> None:
    trained = bpe.train(bpe.count_pretokens(KNOWN, special_tokens=["<|end|>"]), vocab_size=270)
    with pipeline() as p:
        texts = p | beam.Create([{"text": text} for text in KNOWN])
        encoded = texts | EncodeDocuments(tokenizer=trained, append_token="<|end|>")
        rows = encoded | MeasureDrift(tokenizer=trained)
        tokens = sum(len(trained.encode(text)) for text in KNOWN)
        training = trained.training
        assert training is not None
        assert_that(
            rows | beam.Map(lambda row: (row.tokens, row.trained_bytes_per_token)),
            equal_to([(tokens, training.bytes_per_token)]),
        )


def test_the_directory_of_a_training_is_its_tokenizer(folder: Path) -> None:
    model = folder / "model"
    found = trained_bytes_per_token(str(model))
    assert found == trained_bytes_per_token(str(model / "tokenizer.json")) is not None


def test_bytes_of_a_fallback_are_single_bytes() -> None:
    model = bpe.CharacterLevel(byte_fallback=True)
    counts = bpe.count_pretokens(KNOWN)
    tokenizer = bpe.train(counts, vocab_size=300, model=model)
    with pipeline() as p:
        encoded = p | beam.Create([{"text": "жук"}]) | EncodeDocuments(tokenizer=tokenizer)
        rows = encoded | MeasureDrift(tokenizer=tokenizer)
        ids = tokenizer.encode("жук")
        share = sum((tokenizer.tokens[one] or b"").startswith(b"<0x") for one in ids) / len(ids)
        assert share > 0.5
        assert_that(rows | beam.Map(lambda row: row.single_byte_share), equal_to([share]))


def test_a_baseline_must_be_of_the_tokenizer(folder: Path, tmp_path: Path) -> None:
    path = str(folder / "model" / "tokenizer.json")
    counts = tmp_path / "words"
    bpe.count_pretokens(KNOWN, pretokenizer="words").save(counts)
    with pytest.raises(Exception, match="was split with words"), pipeline() as p:
        _ = p | beam.Create([ENCODED]) | MeasureDrift(tokenizer=path, baseline=counts)
    for wrong in ("", 123):
        with pytest.raises(ConfigError, match="give a directory of counts"):
            MeasureDrift(tokenizer=path, baseline=wrong)  # type: ignore[arg-type]  # refused


def test_one_row_a_window_is_all_there_may_be(folder: Path) -> None:
    path = str(folder / "model" / "tokenizer.json")
    p = beam.Pipeline()
    often = beam.WindowInto(
        FixedWindows(60),
        trigger=Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.DISCARDING,
    )
    with pytest.raises(ConfigError, match="MeasureDrift gives one row"):
        _ = p | beam.Create(["x"]) | often | MeasureDrift(tokenizer=path)
    trained = p | "Counts" >> beam.Create([(b"x", 1)]) | TrainTokenizer(vocab_size=257)
    with pytest.raises(ConfigError, match="a path or a bpe"):
        MeasureDrift(tokenizer=trained)
