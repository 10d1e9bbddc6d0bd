"""The whole chain gives the same bytes on Flink, Prism and Spark as on the local runner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.cluster import cache
from tests.cluster.jobs import HERE, SECONDS, Job, Submission, whole_job
from tests.pipelines.corpora import SPLIT, sentence, tree, write_rows
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path


SERVERS = ["flink_local", "on_prism", "on_spark"]
long = pytest.mark.long


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job of every kind of step: words and their runs are counted, and learnt from."""
    return whole_job(tmp_path_factory.mktemp("whole"), superwords=20, max_run=3)


@pytest.mark.parametrize("submission", long_but(SERVERS, "on_prism"), indirect=True)
def test_the_chain(submission: Submission, job: Job, tmp_path: Path) -> None:
    job.run(tmp_path / "out", submission)
    job.check(tmp_path / "out")
    job.verify(tmp_path / "out", submission)


MIXED = "--mix a=70% --mix b=30% --mix-seed 2 --token-budget 900"
# Every option that decides about rows, and every format.
EXPORTS = {
    name: tuple(options.split())
    for name, options in {
        "megatron": f"--to megatron {MIXED} --validation 30% --shuffle 3 --pack 16",
        "parquet": "--to parquet --pack 16 --packing best-fit --pack-remainder pad --shuffle 4 "
        "--pad-token <|end|> --add-column document_ids",
        "plain": "--to parquet --parquet-encoding plain --pack 9 --pack-remainder drop",
        "bin": "--to bin --header llm.c --pack 16 --shuffle 5",
        "mds": f"--to mds --shard-size 1KiB {MIXED}",
        "litdata": "--to litdata --max-tokens 9 --validation 20%",
    }.items()
}


def here_and_there(folder: Path, submission: Submission, *command: str | Path) -> dict[str, bytes]:
    """The files of a command, which are the same on both runners."""
    for name, where in (("here", HERE), ("there", submission)):
        bpe(*command, "-q", "--output", folder / name, *where.options, seconds=SECONDS)
    here, there = tree(folder / "here"), tree(folder / "there")
    for files in (here, there):
        files.pop(".plan.json", None)  # which has the id of the run
    assert there == here
    return there


@long
@pytest.mark.parametrize("submission", SERVERS, indirect=True)
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export(submission: Submission, job: Job, tmp_path: Path, name: str) -> None:
    """The ids are two sources."""
    ids = job.disk / "encoded"
    here_and_there(tmp_path, submission, "export", f"a={ids}", f"b={ids}", *EXPORTS[name])
    given = ("--input", f"a={ids}", "--input", f"b={ids}", "-q")
    bpe("verify", tmp_path / "there", *given, *submission.options, seconds=SECONDS)


@long
@pytest.mark.parametrize("submission", SERVERS, indirect=True)
def test_counts_by_group(submission: Submission, tmp_path: Path) -> None:
    langs = [("de", "en", "日本")[i * i % 7 % 3] for i in range(50)]
    write_rows(
        corpus := tmp_path / "records.jsonl",
        ({"text": sentence(i), "lang": lang} for i, lang in enumerate(langs)),
    )
    how = ("--group-by", "lang", "--split-size", str(SPLIT), "--shards", "2")
    made = here_and_there(tmp_path, submission, "count", "--input", corpus, *how)
    assert "lang=de/data/part-00001-of-00002.parquet" in made


@long
@pytest.mark.parametrize("runner", ["FlinkRunner", "PrismRunner"])
def test_runners_by_their_own_names(
    job: Job, flink_local: Submission, on_prism: Submission, tmp_path: Path, runner: str
) -> None:
    server = flink_local if runner == "FlinkRunner" else on_prism
    flags = [one for one in server.for_beam if not one.startswith("--environment_type")]
    job.run(tmp_path / "out", Submission(("--runner", runner, "--", *flags)))
    job.check(tmp_path / "out")


@long
def test_a_prism_that_beam_starts(job: Job, pieces: None, tmp_path: Path) -> None:
    started = f"--prism_location={cache.prism()}"
    job.run(tmp_path / "out", Submission(("--runner", "PrismRunner", "--", started)))
    job.check(tmp_path / "out")
