"""Jobs are planned inside their pipelines: no graph holds files, and restarts keep the plan."""

from __future__ import annotations

import json
import pkgutil
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest

from pipelines import (
    CountCorpus,
    CountPretokens,
    EncodeCorpus,
    EncodeDocuments,
    WriteCounts,
    WriteTokenIds,
)
from pipelines.compare.job import CompareRequest
from pipelines.compare.result import read_comparison
from pipelines.compare.tokenizers import parse_tokenizers
from pipelines.run import metric, run
from pipelines.settings import (
    InputSettings,
)
from pipelines.stage.beam import RunJob
from tests.pipelines.beam_runs import pipeline
from tests.pipelines.corpora import (
    ONE,
    begun,
    count,
    count_request,
    encode,
    encode_request,
    make_units,
    tree,
    write_jsonl,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.stage.stage import Job

TEXTS = [f"the quick brown fox {i}" for i in range(40)]


@dataclass(frozen=True)
class Place:
    """A corpus of one file, and a tokenizer."""

    folder: Path
    model: Path

    @property
    def inputs(self) -> InputSettings:
        return InputSettings(patterns=(str(self.folder / "in"),), split_size=400)

    def add(self, name: str = "z.jsonl") -> None:
        write_jsonl(self.folder / "in" / name, ["a file that was added later"])


@pytest.fixture
def place(tmp_path: Path, model: Path) -> Place:
    write_jsonl(tmp_path / "in" / "a.jsonl", TEXTS)
    return Place(tmp_path, model)


def run_job(request: Job) -> Any:
    return run(lambda p, failures: p | RunJob(request, failures), execution=ONE, pieces=2)


def test_a_restarted_encoding_goes_on_with_its_first_plan(place: Place) -> None:
    encode(place.inputs, place.model, place.folder / "expected")
    request = encode_request(place.inputs, place.model, place.folder / "ids")
    half = len(begun(request)) // 2
    assert half > 1
    make_units(request, half)
    place.add()
    for resumed in (half, 0):  # once more, when it is complete
        assert metric(run_job(request), "units_resumed") == resumed
        assert tree(place.folder / "ids") == tree(place.folder / "expected")


def test_a_restarted_count_or_comparison_goes_on_with_its_first_plan(place: Place) -> None:
    count(place.inputs, place.folder / "expected")
    out, job = place.folder / "out", place.folder / "job"
    files = parse_tokenizers([f"a={place.model}", f"b={place.model}"])
    compare = CompareRequest.of(inputs=place.inputs, tokenizers=files, directory=str(job))
    requests = (count_request(place.inputs, out), compare.started())
    for request in requests:
        begun(request)
    (out / "data").mkdir()
    (out / "data" / "part-00003-of-00016.parquet").write_bytes(b"half")
    place.add()
    for request in requests * 2:
        run_job(request)
    assert tree(out) == tree(place.folder / "expected")
    result = read_comparison(str(job / "comparison.json"))
    assert result["total"]["documents"] == len(TEXTS)


@pytest.mark.parametrize("lost", [".splits.arrow", "tokenizer.json"])
def test_a_plan_that_was_not_stored_whole_is_made_again(place: Place, lost: str) -> None:
    """A worker was lost between writing the plan and the splits; nothing was encoded then."""
    request = encode_request(place.inputs, place.model, place.folder / "ids")
    first = begun(request)
    (place.folder / "ids" / ".splits.arrow").unlink()
    (place.folder / "ids" / lost).unlink(missing_ok=True)
    place.add()
    assert len(begun(request)) == len(first) + 1
    run_job(request)
    encode(place.inputs, place.model, place.folder / "expected")
    assert tree(place.folder / "ids") == tree(place.folder / "expected")


def write_counts(p: beam.Pipeline, place: Place, out: str, **choice: Any) -> None:
    _ = p | beam.Create(TEXTS) | CountPretokens() | WriteCounts(out, shards=PARTS, **choice)


def write_ids(p: beam.Pipeline, place: Place, out: str, **choice: Any) -> None:
    documents = p | beam.Create([{"id": i, "text": text} for i, text in enumerate(TEXTS)])
    ids = documents | EncodeDocuments(tokenizer=place.model)
    _ = ids | WriteTokenIds(out, tokenizer=place.model, parts=PARTS, **choice)


PARTS = 4
# Transforms that write a PCollection to a directory, and the function that each calls for a part.
SINKS: dict[str, tuple[Callable[..., None], str]] = {
    "counts": (write_counts, "pipelines.transforms.counts_files.write_shard"),
    "ids": (write_ids, "pipelines.transforms.token_ids.write_part"),
}


def on_half(monkeypatch: pytest.MonkeyPatch, step: str, act: Callable[[], None]) -> None:
    """Do something before the step of the second part of four."""
    function, seen = pkgutil.resolve_name(step), list[int]()

    def hooked(*arguments: Any) -> Any:
        seen.append(1)
        if len(seen) == PARTS // 2:
            act()
        return function(*arguments)

    monkeypatch.setattr(step, hooked)


def fail() -> None:
    raise RuntimeError("a worker is lost")


@pytest.mark.parametrize("kind", SINKS)
def test_a_restarted_sink_goes_on_and_one_that_is_replaced_ends(
    place: Place, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (write, step), out = SINKS[kind], place.folder / "out"
    with pipeline() as p:
        write(p, place, str(place.folder / "expected"))
    p = pipeline()
    write(p, place, str(out))
    assert not out.exists()
    with monkeypatch.context() as patch:
        on_half(patch, step, fail)
        with pytest.raises(Exception, match="a worker is lost"):
            p.run()
    assert len(list((out / "data").iterdir())) >= PARTS // 2 - 1 > 0
    assert not (out / "manifest.json").exists()
    for _ in range(2):  # once more, when it is complete
        p.run().wait_until_finish()
        assert tree(out) == tree(place.folder / "expected")
    first = pipeline()
    write(first, place, str(out))
    with pytest.raises(Exception, match="which is complete: replace it"):
        first.run()

    def second() -> None:
        with pipeline() as p:
            write(p, place, str(out), overwrite=True)

    shutil.rmtree(out)
    on_half(monkeypatch, step, second)
    with pytest.raises(Exception, match="another job has been started there since"):
        first.run()
    assert json.loads((out / "manifest.json").read_text())["totals"]["documents"] in (0, len(TEXTS))


def test_nothing_is_done_before_the_pipeline_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.folder)
    before = tree(place.folder)
    p = beam.Pipeline(runner="FnApiRunner")
    counts = CountCorpus(inputs=["nowhere/*.txt"], output="counts", overwrite=True)
    ids = EncodeCorpus(inputs=["nowhere"], tokenizer="no.json", output="ids", overwrite=True)
    _ = p | counts
    _ = p | ids
    assert tree(place.folder) == before
    assert {path.name for path in place.folder.iterdir()} == {"in"}
    monkeypatch.chdir("/")
    with pytest.raises(Exception, match=r"no file matches|cannot read the tokenizer"):
        p.run()
    assert "nowhere" not in {path.name for path in place.folder.iterdir()}
