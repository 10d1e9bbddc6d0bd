"""Encode the elements of a pipeline on one core, compared with ``encode_arrow`` on the same texts.

The clock runs from the first element that a step of the pipeline yields to the last one that
another step gets: Beam's start is no part of it, what Beam does for each element is. Elements and
tokenizer are ready before. Each process encodes once: the tokenizer's cache of words is cold.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions

from benchmarks import vocabularies
from benchmarks.contenders.report import Report, ids_digest, timed
from benchmarks.corpora import column, text_bytes
from pipelines import EncodeDocuments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHAPES = {"documents": 6000, "lines": 100, "tables": 6000}  # characters of a text
VOCABULARY = "r50k_base"
_BLOCK = 4 << 20  # bytes of a table, and of a call of encode_arrow

# Of this process, in which the runner's one worker is too.
_elements: list[Any] = []
_results: list[Any] = []
_times: list[float] = []


class _Give(beam.DoFn):  # type: ignore[misc]  # Beam has no types
    def process(self, _: None) -> Iterator[Any]:
        _times.append(time.perf_counter())
        yield from _elements


class _Take(beam.DoFn):  # type: ignore[misc]
    def process(self, element: Any) -> None:
        _results.append(element)

    def finish_bundle(self) -> None:
        _times.append(time.perf_counter())


def texts_of(corpus: str, size: int, shape: str) -> list[pa.LargeStringArray]:
    """A corpus cut into texts of one length, in blocks."""
    joined = "".join(column(corpus, size).to_pylist())
    length = SHAPES[shape]
    texts = [joined[i : i + length] for i in range(0, len(joined), length)]
    rows = max(_BLOCK // length, 1)
    return [pa.array(texts[i : i + rows], pa.large_string()) for i in range(0, len(texts), rows)]


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts and the vocabulary's file."""
    corpus, size, _ = arguments
    column(corpus, int(size))
    vocabularies.tokenizer_json(VOCABULARY)


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Encode once; the arguments are the corpus, bytes of it, and a name of `SHAPES`.

    Args:
        name: ``EncodeDocuments`` or ``encode_arrow``.
        arguments: as above.
        check: whether only the output matters.
    """
    corpus, size, shape = arguments
    blocks = texts_of(corpus, int(size), shape)
    if name == "encode_arrow":
        tokenizer = vocabularies.load(VOCABULARY)
        seconds, found = timed(lambda: [tokenizer.encode_arrow(block) for block in blocks])
        lists = [(ids.values.to_numpy(), np.diff(ids.offsets.to_numpy())) for ids in found]
    else:
        seconds = _encode_elements(blocks, shape)
        lists = [_ids(result) for result in _results]
    digest = ids_digest(
        np.concatenate([ids.astype("<u4") for ids, _ in lists]),
        np.concatenate([lengths for _, lengths in lists]),
    )
    return Report(
        digest=digest,
        measures={} if check else {"seconds": seconds},
        text_bytes=sum(map(text_bytes, blocks)),
    )


def _encode_elements(blocks: list[pa.LargeStringArray], shape: str) -> float:
    if shape == "tables":
        _elements.extend(pa.table({"text": block}) for block in blocks)
    else:
        _elements.extend({"text": text} for block in blocks for text in block.to_pylist())
    options = PipelineOptions(["--direct_running_mode=in_memory"])
    with beam.Pipeline(runner="FnApiRunner", options=options) as pipeline:
        _ = (
            pipeline
            | beam.Create([None], reshuffle=False)
            | beam.ParDo(_Give()).with_output_types(pa.Table if shape == "tables" else Any)
            | EncodeDocuments(tokenizer=str(vocabularies.tokenizer_json(VOCABULARY)), as_numpy=True)
            | beam.ParDo(_Take())
        )
    began, ended = _times
    return ended - began


def _ids(result: Any) -> tuple[Any, Any]:
    """The ids of a result, and how many each of its texts has."""
    if isinstance(result, dict):
        return result["input_ids"], np.array([len(result["input_ids"])])
    lists = result["input_ids"].combine_chunks()
    return lists.flatten().to_numpy(), lists.value_lengths().to_numpy()
