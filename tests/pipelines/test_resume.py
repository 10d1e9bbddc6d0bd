"""A job that was killed is finished by ``--resume``, and nobody can tell afterwards."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.encode.job import EncodeRequest
from pipelines.errors import OutputError
from pipelines.settings import EncodeSettings, OutputSettings
from pipelines.stage.record import Record, finished
from pipelines.storage import is_temporary
from tests.pipelines.corpora import (
    TWO,
    Corpus,
    encode,
    make_units,
    sentence,
    tree,
    write_jsonl,
)
from tests.shared_data import LONG

SCRIPT = """
import sys
from pathlib import Path
from pipelines.settings import InputSettings, TrainSettings
from tests.pipelines.corpora import TWO, encode, train

source, folder = sys.argv[1], Path(sys.argv[2])
inputs = InputSettings(patterns=(source,), split_size=20_000)
training = TrainSettings(vocab_size=400)
train(folder / "model", inputs=inputs, training=training, execution=TWO, resume=True)
encode(inputs, folder / "model" / "tokenizer.json", folder / "ids", execution=TWO, resume=True)
"""
ROOT = Path(__file__).resolve().parents[2]


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "flipped byte":
        data[len(data) // 3] ^= 0x40
    elif how == "flipped first byte":
        data[0] ^= 1
    elif how == "truncated":
        del data[-20:]
    elif how == "empty":
        data.clear()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(data)


@pytest.mark.parametrize(
    "how", ["flipped byte", "flipped first byte", "truncated", "empty", "missing"]
)
def test_a_damaged_part_is_made_again(
    corpus: Corpus, model: Path, tmp_path: Path, how: str
) -> None:
    summary = encode(corpus.inputs(), model, tmp_path / "ids")
    before = tree(tmp_path / "ids")
    damage(sorted((tmp_path / "ids").glob("data/train-*"))[2], how)
    again = encode(corpus.inputs(), model, tmp_path / "ids", resume=True)
    assert again.resumed_parts == summary.parts - 1
    assert tree(tmp_path / "ids") == before


def test_any_flipped_byte_is_found_without_a_manifest(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    request = EncodeRequest.of(
        inputs=corpus.inputs(),
        tokenizer=str(model),
        output=OutputSettings(directory=str(tmp_path / "ids")),
        encoding=EncodeSettings(),
    ).started()
    request.begin()
    (stage,) = request.stages
    unit = next(iter(stage.units()))
    (made,) = make_units(stage, 1)

    def found(fingerprint: str = unit.fingerprint) -> Record | None:
        return finished(request.directory, unit.name, fingerprint=fingerprint)

    assert found() == made
    assert found("another") is None
    record = tmp_path / "ids" / "records" / f"{unit.name}.json"
    for path in (tmp_path / "ids" / made.files[0].file, record):
        good = path.read_bytes()
        for place in range(len(good)):
            damaged = bytearray(good)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            assert found() is None or (path == record and found() == made), place
        for length in (0, 4, 11, len(good) // 2, len(good) - 1):
            path.write_bytes(good[:length])
            assert found() is None, length
        path.write_bytes(good)
    assert found() == made


def test_a_part_under_the_name_of_another_is_made_again(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    summary = encode(corpus.inputs(), model, tmp_path / "ids")
    before = tree(tmp_path / "ids")
    (tmp_path / "ids" / "manifest.json").unlink()
    first, second, *_ = sorted((tmp_path / "ids").glob("data/train-*"))
    first.write_bytes(second.read_bytes())
    again = encode(corpus.inputs(), model, tmp_path / "ids", resume=True)
    assert again.resumed_parts == summary.parts - 1
    assert tree(tmp_path / "ids") == before


def test_dead_letters_that_are_lost_are_written_again(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(30)])
    path = corpus.folder / "docs.jsonl"
    path.write_text(path.read_text() + '{"text": 1}\n')
    inputs = corpus.inputs(max_failures=1)
    summary = encode(inputs, model, tmp_path / "ids")
    before = tree(tmp_path / "ids")
    (letters,) = (tmp_path / "ids" / "dead-letters").iterdir()
    letters.unlink()
    again = encode(inputs, model, tmp_path / "ids", resume=True)
    assert again.resumed_parts == summary.parts - 1
    assert tree(tmp_path / "ids") == before


def test_a_finished_job_is_only_checked(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    summary = encode(corpus.inputs(), model, tmp_path / "ids")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "ids").glob("data/train-*")}
    again = encode(corpus.inputs(), model, tmp_path / "ids", resume=True, execution=TWO)
    assert again.resumed_parts == summary.parts
    assert again.tokens == summary.tokens
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_another_job_is_not_resumed(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    encode(corpus.inputs(), model, tmp_path / "ids")
    before = tree(tmp_path / "ids")
    with pytest.raises(OutputError, match="parts were"):
        encode(corpus.inputs(split_size=400), model, tmp_path / "ids", resume=True)
    other = write_jsonl(tmp_path / "other" / "docs.jsonl", ["text"])
    with pytest.raises(OutputError, match="inputs bytes was"):
        encode(other.inputs(), model, tmp_path / "ids", resume=True)
    assert tree(tmp_path / "ids") == before


def start(source: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(source), str(folder)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(source: Path, folder: Path) -> None:
    process = start(source, folder)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


def files_in(folder: Path) -> int:
    return sum(1 for path in folder.rglob("*") if path.suffix != ".tmp")


def kill_when(process: subprocess.Popen[bytes], folder: Path, files: int) -> bool:
    """Kill the job as soon as there are so many files; whether that came before its end."""
    while process.poll() is None:
        if files_in(folder) >= files:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return process.returncode == -signal.SIGKILL
        time.sleep(0.005)
    process.communicate()
    return False


def test_killed_at_random_moments_and_resumed_it_is_the_same(tmp_path: Path) -> None:
    texts = [sentence(i, 60) for i in range(1200)]
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", texts)
    finish(corpus.folder, tmp_path / "undisturbed")
    most = files_in(tmp_path / "undisturbed")
    moments = [random.Random(20).randrange(2, 19), most // 2 + 10]  # in counting, among the parts
    if LONG:
        moments[1:] = [23, moments[1], most - 2]  # between the steps, too, and close to the end
    killed = [
        kill_when(start(corpus.folder, tmp_path / "killed"), tmp_path / "killed", moment)
        for moment in moments
    ]
    assert any(killed)
    finish(corpus.folder, tmp_path / "killed")
    assert tree(tmp_path / "killed") == tree(tmp_path / "undisturbed")
    assert not any(is_temporary(path.name) for path in (tmp_path / "killed").rglob(".*"))
