"""Promises of every job over text: no bad record is lost, none is let through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.errors import RecordError
from tests import jobs
from tests.contract.kinds import KINDS, Kind
from tests.pipelines.corpora import ONE, TWO, dead_letters, small_tokenizer, tree
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import Execution

SPLIT = 70
FILES = {
    "a.jsonl": b'{"text": "one"}\n{"text": 2}\n{"text": "three"}\n{"txt": "no"}\n',
    "b.jsonl": b'{"text": "four"}\n{"text": "five"}\n{"text": "h\xffx"}\n{"text": "six"}\n',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three bad records in two files, and five documents; next to them, a file of bad ones only."""
    path = tmp_path_factory.mktemp("bad")
    small_tokenizer(path / "tokenizer.json")
    (path / "corpus").mkdir()
    for name, data in FILES.items():
        (path / "corpus" / name).write_bytes(data)
    (path / "worse.jsonl").write_bytes(b"{\n" * 3)
    return path


@pytest.fixture(params=long_but(["count", "train", "encode"], "count", "encode"))
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each job over text."""
    return KINDS[request.param]


@pytest.mark.parametrize("execution", long_but([ONE, TWO], ONE), ids=["one worker", "two"])
def test_the_first_one_ends_the_job(
    kind: Kind, folder: Path, tmp_path: Path, execution: Execution
) -> None:
    with pytest.raises(RecordError) as error:
        kind.run(folder, tmp_path / "out", split_size=SPLIT, execution=execution)
    message = str(error.value)
    assert str(folder / "corpus") in message
    assert "record at " in message
    assert "`max_failures` N" in message
    assert "\n" not in message
    assert not (tmp_path / "out" / kind.last).exists()


def test_too_many_over_all_splits_end_the_job_and_more_may_be_allowed_then(
    kind: Kind, folder: Path, tmp_path: Path
) -> None:
    some = {"split_size": SPLIT, "max_failures": 2}
    with pytest.raises(RecordError, match=r"3 bad records, the first: a\.jsonl.*the 2 bad records"):
        kind.run(folder, tmp_path / "out", execution=TWO, **some)
    assert not (tmp_path / "out" / kind.last).exists()
    enough = {"split_size": SPLIT, "max_failures": 3}
    summary = kind.run(folder, tmp_path / "out", resume=True, **enough)
    assert (summary.documents, summary.failures) == (5, 3)
    kind.run(folder, tmp_path / "new", **enough)
    whole = tree(tmp_path / "new")
    assert tree(tmp_path / "out") == whole
    letters = sorted((tmp_path / "out").rglob("dead-letters/*"))
    assert len(letters) > 1
    found = dead_letters(tmp_path / "out")
    places = [("a.jsonl", 16), ("a.jsonl", 46), ("b.jsonl", 34)]
    assert [(letter["file"], letter["place"]) for letter in found] == places
    assert found[0]["raw"].strip() == '{"text": 2}'
    assert "raw_base64" in found[2]
    assert all(letter["reason"] and letter["size"] for letter in found)
    jobs.verify(directory=str(letters[0].parents[1]))
    letters[0].unlink()  # what is lost is written again
    kind.run(folder, tmp_path / "out", resume=True, **enough)
    assert tree(tmp_path / "out") == whole


def test_nothing_but_bad_records_is_no_corpus(kind: Kind, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        RecordError, match=r"no record is a document: 3 bad records, .*worse\.jsonl"
    ):
        kind.run(folder, tmp_path / "out", inputs=(str(folder / "worse.jsonl"),), max_failures=9)
    assert not (tmp_path / "out" / kind.last).exists()
