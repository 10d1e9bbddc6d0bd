"""Drift: the fit of a tokenizer to the documents of each window."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import equal_to
from apache_beam.transforms.window import FixedWindows

import bpe
from pipelines import EncodeDocuments, MeasureDrift, TrainTokenizer
from pipelines.encode.drift import trained_bytes_per_token
from pipelines.errors import ConfigError
from pipelines.settings import CountsInput, TrainSettings
from tests.pipelines.beam_runs import assert_that, at_times, both_modes, pipeline
from tests.pipelines.corpora import count, train, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KNOWN, STRANGE = ["the lazy dog", "lazy dogs"], ["żółć źdźbło"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``counts``, a ``model`` trained on them, and other counts, ``words``."""
    folder = tmp_path_factory.mktemp("drift")
    corpus = write_jsonl(folder / "corpus" / "c.jsonl", KNOWN)
    count(corpus.inputs(), folder / "counts")
    counts = CountsInput(directory=str(folder / "counts"))
    bpe.count_pretokens(KNOWN, pretokenizer="words").save(folder / "words")
    train(folder / "model", counts=(counts,), training=TrainSettings(vocab_size=270))
    return folder


def expected(
    tokenizer: bpe.Tokenizer, texts: list[str], *, baseline: bool = False, **known: Any
) -> dict[str, Any]:
    """The figures of the texts, one at a time."""
    tokens = [tokenizer.token_bytes(one) for text in texts for one in tokenizer.encode(text)]
    single = sum(len(one) == 1 or one.startswith(b"<0x") for one in tokens)
    seen = dict(bpe.count_pretokens(KNOWN).items())
    found = dict(bpe.count_pretokens(texts).items())
    unseen = sum(count for pretoken, count in found.items() if pretoken not in seen)
    size = sum(len(text.encode()) for text in texts)
    training = tokenizer.training
    return {
        "text_bytes": size,
        "tokens": len(tokens),
        "bytes_per_token": size / len(tokens),
        "trained_bytes_per_token": None if training is None else training.bytes_per_token,
        "single_byte_share": single / len(tokens),
        "unseen_per_million": 1e6 * unseen / sum(found.values()) if baseline else None,
        **known,
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
        encoded = p | at_times(*elements) | EncodeDocuments(tokenizer=path)
        windows = encoded | beam.WindowInto(FixedWindows(60))
        rows = windows | MeasureDrift(tokenizer=path, baseline=str(folder / "counts"))
        figures = partial(
            expected,
            bpe.Tokenizer.load(path),
            baseline=True,
            trained_bytes_per_token=trained_bytes_per_token(path),
        )
        made = [(0.0, figures(KNOWN)), (60.0, figures(STRANGE))]
        assert_that(rows | beam.Map(row_of), equal_to(made))


def trained(**options: Any) -> bpe.Tokenizer:
    special = ["<|end|>"] if not options else []
    counts = bpe.count_pretokens(KNOWN, special_tokens=special)
    return bpe.train(counts, vocab_size=280, **options)


TOKENIZERS: dict[str, Callable[[Path], bpe.Tokenizer]] = {
    "a loaded file does not know its training": lambda folder: bpe.Tokenizer.load(
        folder / "model" / "tokenizer.json"
    ),
    "special tokens are left out": lambda _: trained(),
    "bytes of a fallback are single bytes": lambda _: trained(
        model=bpe.CharacterLevel(byte_fallback=True)
    ),
}


@pytest.mark.parametrize("make", TOKENIZERS.values(), ids=TOKENIZERS)
def test_a_tokenizer_by_value_without_a_baseline(folder: Path, make: Any) -> None:
    tokenizer, texts = make(folder), [*KNOWN, "жук"]
    end = "<|end|>" if tokenizer.special_tokens else None
    with pipeline() as p:
        documents = p | beam.Create([{"text": text} for text in texts])
        encoded = documents | EncodeDocuments(tokenizer=tokenizer, append_token=end)
        rows = encoded | MeasureDrift(tokenizer=tokenizer)
        made = expected(tokenizer, texts)
        assert_that(rows | beam.Map(lambda row: row.as_dict()), equal_to([made]))


def test_slices_and_empty_tables_count_what_they_hold() -> None:
    tokenizer, texts = trained(), ["strange", *KNOWN]
    ids = pa.array(tokenizer.encode_batch(texts), pa.list_(pa.uint16()))
    table = pa.table({"text": texts, "input_ids": ids})
    with pipeline() as p:
        tables = p | beam.Create([table.slice(1), table.slice(0, 0)])
        rows = tables | MeasureDrift(tokenizer=tokenizer)
        made = expected(tokenizer, KNOWN)
        assert_that(rows | beam.Map(lambda row: row.as_dict()), equal_to([made]))


@pytest.mark.parametrize(
    ("element", "baseline", "message"),
    [
        ({"text": "lazy", "input_ids": [1, 999]}, "counts", "token ids from 1 to 999"),
        ({"text": "lazy", "input_ids": [-1]}, "counts", "token ids from -1 to -1"),
        ({"text": None, "input_ids": []}, "counts", "field 'text' is NoneType"),
        (
            pa.table({"text": ["lazy", None], "input_ids": [[1], [2]]}),
            "counts",
            "column 'text' has nulls",
        ),
        ({"text": "lazy", "input_ids": [1]}, "words", "was split with words"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    element: Any, baseline: str, message: str, folder: Path
) -> None:
    measure = MeasureDrift(
        tokenizer=str(folder / "model" / "tokenizer.json"), baseline=str(folder / baseline)
    )
    with pytest.raises(Exception, match=message), pipeline() as p:
        _ = p | beam.Create([element]) | measure


def test_the_directory_of_a_training_is_its_tokenizer(folder: Path) -> None:
    model = folder / "model"
    found = trained_bytes_per_token(str(model))
    assert found == trained_bytes_per_token(str(model / "tokenizer.json")) is not None


def test_a_tokenizer_that_is_trained_on_the_way_is_refused() -> None:
    trained = pipeline() | beam.Create([(b"x", 1)]) | TrainTokenizer(vocab_size=257)
    with pytest.raises(ConfigError, match="a path or a bpe"):
        MeasureDrift(tokenizer=trained)
