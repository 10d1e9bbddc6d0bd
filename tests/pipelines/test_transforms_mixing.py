"""`MixCounts`: the tokenizer of a mix is the one that files give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to
from apache_beam.transforms.window import FixedWindows, TimestampedValue

import bpe
from pipelines import CountPretokens, MixCounts, TrainTokenizer
from pipelines.errors import ConfigError
from pipelines.settings import InputSettings, TrainSettings
from tests.pipelines.beam_runs import assert_that, pipeline
from tests.pipelines.corpora import sentence, small_tokenizer, train

if TYPE_CHECKING:
    from pathlib import Path

SHARES = {"web": "70%", "code": "30%"}
TEXTS = {
    "web": [sentence(number, 30) for number in range(40)],
    "code": [f"{sentence(number, 5)} = {number}" for number in range(60)],
}


@pytest.mark.parametrize(("of", "extended"), [("bytes", False), ("pretokens", True)])
def test_the_tokenizer_is_the_one_of_the_files(tmp_path: Path, of: Any, extended: bool) -> None:
    for name, texts in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(texts), "utf-8")
    patterns = tuple(f"{name}={tmp_path / name}.txt" for name in TEXTS)
    training: dict[str, Any] = {"vocab_size": 300}
    if extended:
        small_tokenizer(tmp_path / "old.json")
        training = {"max_merges": 30, "extend": str(tmp_path / "old.json")}
    summary = train(
        tmp_path / "model",
        inputs=InputSettings(patterns=patterns, format="lines"),
        mix=tuple(f"{name}={share}" for name, share in SHARES.items()),
        share_of=of,
        training=TrainSettings(**training),
    )
    with pipeline() as p:
        counts = {
            name: p | name >> beam.Create(texts) | f"count {name}" >> CountPretokens()
            for name, texts in TEXTS.items()
        }
        tokenizer = counts | MixCounts(SHARES, of=of) | TrainTokenizer(**training)
        path = str(tmp_path / "ours.json")
        _ = tokenizer | beam.Map(lambda one, path: one.save(path), path)
    expected = bpe.Tokenizer.load(tmp_path / "model" / "tokenizer.json")
    assert bpe.Tokenizer.load(path).to_json() == expected.to_json()
    assert summary.merges >= 30


def test_shares_hold_in_each_window() -> None:
    counts = {
        "web": [(b"a", 1, 0), (b"bb", 4, 0), (b"a", 7, 10)],
        "code": [(b"c", 3, 0), (b"c", 1, 10)],
    }
    with pipeline() as p:
        sources = {
            name: p
            | name >> beam.Create([TimestampedValue((key, n), at) for key, n, at in values])
            | f"window {name}" >> beam.WindowInto(FixedWindows(10))
            for name, values in counts.items()
        }
        mixed = sources | MixCounts({"web": "1/2", "code": "1/2"})
        assert_that(mixed, equal_to([(b"a", 1), (b"bb", 4), (b"c", 9), (b"a", 7), (b"c", 7)]))


def test_sources_without_a_share_are_refused() -> None:
    p = pipeline()
    counts = {"web": p | beam.Create([(b"a", 1)])}
    with pytest.raises(ConfigError, match="shares of web, code, and is given the sources web"):
        counts | MixCounts(SHARES)


def test_a_source_without_counts_is_an_error() -> None:
    p = pipeline()
    counts = {
        "web": p | "web" >> beam.Create([(b"a", 1)]),
        "code": p | "code" >> beam.Create([]),
    }
    _ = counts | MixCounts(SHARES)
    with pytest.raises(Exception, match="code has no counts: it can have no share"):
        p.run()
