"""One job at a time: the kernel's lock on a disk, the run id in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pipelines.count.job
import pipelines.encode.job
import pipelines.train
from pipelines.count.job import CountRequest
from pipelines.encode.job import EncodeRequest
from pipelines.errors import OutputError
from pipelines.output.lock import locked
from pipelines.run import run
from pipelines.settings import (
    CountSettings,
    CountsInput,
    EncodeSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from pipelines.stage.beam import RunJob
from pipelines.train import TrainRequest
from tests import jobs
from tests.pipelines.corpora import ONE, Corpus, small_tokenizer, write_corpus
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OUT = "store://bucket/out"
REPLACED = "another job has been started there since this one began, so this one ends"


@pytest.fixture
def store() -> Iterator[dict[str, bytes]]:
    """The objects of an empty store."""
    yield ObjectStore.objects
    ObjectStore.objects.clear()
    ObjectStore.times.clear()


def test_two_jobs_do_not_write_to_one_directory(tmp_path: Path) -> None:
    again = locked(str(tmp_path))
    with locked(str(tmp_path)), pytest.raises(OutputError, match="another job is writing"):
        again.__enter__()
    with locked(str(tmp_path)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_store_has_no_lock(store: dict[str, bytes]) -> None:
    with locked(OUT), locked(OUT):
        assert not store


def replaced_at(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]
) -> None:
    """Have another job begin when a worker of the first comes to a function."""
    function, left = getattr(module, name), [act]

    def act_first(*arguments: Any, **named: Any) -> Any:
        if left:
            left.pop()()
        return function(*arguments, **named)

    monkeypatch.setattr(module, name, act_first)


def check_made_once(job: Callable[[], object], again: Callable[[], object], last: str) -> None:
    """The job whose run id was replaced ends with an error; the other makes all of the output."""
    with pytest.raises(OutputError, match=REPLACED) as error:
        job()
    assert error.value.exit_status == 1
    assert f"{OUT}/{last}" not in ObjectStore.objects
    again()
    replaced = ObjectStore.tree(OUT)
    ObjectStore.objects.clear()
    job()
    assert ObjectStore.tree(OUT) == replaced
    assert last in replaced


@pytest.mark.usefixtures("store")
def test_a_count_on_a_store_whose_run_id_is_replaced_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_corpus(tmp_path / "corpus").inputs()
    other = CountRequest.of(
        inputs=inputs,
        pretokens=PretokenSettings(),
        output=OutputSettings(directory=OUT, overwrite=True),
        settings=CountSettings(),
    ).started()
    replaced_at(monkeypatch, pipelines.count.job, "write_shard_of", other.begin)
    check_made_once(
        lambda: jobs.count(
            inputs=inputs,
            pretokens=PretokenSettings(),
            output=OutputSettings(directory=OUT),
            execution=ONE,
        ),
        lambda: run(lambda p, failures: p | RunJob(other, failures), execution=ONE),
        "manifest.json",
    )


@pytest.mark.usefixtures("store")
def test_an_encoding_on_a_store_whose_run_id_is_replaced_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, tokenizer = write_corpus(tmp_path / "corpus").inputs(), str(tmp_path / "t.json")
    small_tokenizer(tmp_path / "t.json")
    other = EncodeRequest.of(
        inputs=inputs,
        tokenizer=tokenizer,
        output=OutputSettings(directory=OUT, overwrite=True),
        encoding=EncodeSettings(),
    ).started()
    replaced_at(monkeypatch, pipelines.encode.job, "encode_split", other.begin)
    check_made_once(
        lambda: jobs.encode(
            inputs=inputs,
            tokenizer=tokenizer,
            output=OutputSettings(directory=OUT),
            execution=ONE,
        ),
        lambda: run(lambda p, failures: p | RunJob(other, failures), execution=ONE),
        "manifest.json",
    )


@pytest.mark.usefixtures("store")
def test_a_training_on_a_store_whose_run_id_is_replaced_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = CountsInput(directory=str(tmp_path / "counts"))
    corpus: Corpus = write_corpus(tmp_path / "corpus")
    jobs.count(
        inputs=corpus.inputs(),
        pretokens=PretokenSettings(),
        output=OutputSettings(directory=counts.directory),
        execution=ONE,
    )
    other = TrainRequest(
        output=OutputSettings(directory=OUT, overwrite=True),
        counts=(counts,),
        paths=(counts.directory,),
        special_tokens=(),
        training=TrainSettings(vocab_size=300),
    ).started()
    replaced_at(monkeypatch, pipelines.train, "effective_mix", other.begin)
    check_made_once(
        lambda: jobs.train(
            counts=(counts,),
            pretokens=PretokenSettings(),
            training=TrainSettings(vocab_size=300),
            output=OutputSettings(directory=OUT),
            execution=ONE,
        ),
        lambda: run(lambda p, failures: p | RunJob(other, failures), execution=ONE),
        "tokenizer.json",
    )
