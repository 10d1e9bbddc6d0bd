"""One job at a time: the kernel's lock on a disk, claims in an object store."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.errors import OutputError
from pipelines.output import lock
from pipelines.output.lock import CLAIMS, LAPSE, locked
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OUT = "store://bucket/out"
OTHER = f"{OUT}/{CLAIMS}/{'0' * 32}.json"
ELSEWHERE = {"held": True, "host": "far", "process": 7, "since": "today", "machine": "its boot"}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """The objects of an empty store, whose jobs look at each other often."""
    monkeypatch.setattr(lock, "_LOOK", 0.005)
    yield ObjectStore.objects
    ObjectStore.objects.clear()
    ObjectStore.times.clear()


def claim(says: dict[str, Any], *, seconds: float = 0) -> None:
    """Leave a claim of another job, last renewed so long ago."""
    ObjectStore.times[OTHER] = time.time() - seconds
    ObjectStore.objects[OTHER] = json.dumps(says).encode()


def test_two_jobs_do_not_write_to_one_directory(tmp_path: Path) -> None:
    again = locked(str(tmp_path))
    with locked(str(tmp_path)), pytest.raises(OutputError, match="another job is writing"):
        again.__enter__()
    with locked(str(tmp_path)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_two_jobs_do_not_write_to_one_place_of_a_store(store: dict[str, bytes]) -> None:
    again = locked(OUT)
    with locked(OUT + "/"):
        (mine,) = store
        with pytest.raises(OutputError, match="another job is writing") as error:
            again.__enter__()
        assert f"process {os.getpid()} on " in str(error.value)
        assert f"until {mine} is removed" in str(error.value)
        assert list(store) == [mine]
        with locked(f"{OUT}/counts"), locked("store://bucket/out-of-it"):
            pass
    assert not store
    with pytest.raises(ZeroDivisionError), locked(OUT):
        _ = 1 / 0
    assert not store
    with locked(OUT):
        pass


@pytest.mark.parametrize("number", range(5))
def test_of_many_jobs_that_come_at_once_one_stays(store: dict[str, bytes], number: int) -> None:
    jobs = 6
    together = threading.Barrier(jobs)
    told = threading.Condition()
    stayed: list[int] = []
    refused: list[int] = []

    def work(number: int) -> None:
        together.wait()
        try:
            with locked(OUT), told:
                stayed.append(number)
                told.notify_all()
                assert told.wait_for(lambda: len(stayed) + len(refused) == jobs, timeout=60)
        except OutputError:
            with told:
                refused.append(number)
                told.notify_all()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(stayed), len(refused)) == (1, jobs - 1)
    assert not store


def test_a_claim_that_is_not_renewed_lapses(store: dict[str, bytes]) -> None:
    claim(ELSEWHERE, seconds=LAPSE - 60)
    with pytest.raises(
        OutputError, match=r"process 7 on far, since today; last sign of life 24\d s"
    ):
        locked(OUT).__enter__()
    assert list(store) == [OTHER]
    claim(ELSEWHERE, seconds=LAPSE + 1)
    with locked(OUT):
        assert OTHER not in store
    assert not store


def test_a_process_of_this_machine_that_is_gone_holds_nothing(store: dict[str, bytes]) -> None:
    if lock._machine() is None:
        pytest.skip("what processes there are is seen on Linux")
    here = {**ELSEWHERE, "machine": lock._machine(), "process": os.getpid()}
    claim({**here, "began": lock._beginning(os.getpid())})
    with pytest.raises(OutputError, match="another job is writing"):
        locked(OUT).__enter__()
    claim({**here, "began": "1"})  # another process had this number
    with locked(OUT):
        assert OTHER not in store


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff"])
def test_a_claim_that_cannot_be_read_is_one(store: dict[str, bytes], data: bytes) -> None:
    claim({})
    store[OTHER] = data
    with pytest.raises(OutputError, match=r"process None on None, since None; .*0000\.json is"):
        locked(OUT).__enter__()


def test_a_claim_is_renewed(store: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "RENEW", 0.01)
    with locked(OUT):
        (mine,) = store
        for _ in range(3):
            before = ObjectStore.times[mine]
            end = time.monotonic() + 60
            while ObjectStore.times[mine] == before:
                assert time.monotonic() < end
                time.sleep(0.005)


def test_a_job_whose_claim_is_gone_ends(
    store: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "RENEW", 0.01)

    def job() -> None:
        with locked(OUT):
            store.clear()
            end = time.monotonic() + 60
            while time.monotonic() < end:  # until it is interrupted
                time.sleep(0.01)

    with pytest.raises(OutputError, match="the lock of this job is gone"):
        job()
    assert not store
