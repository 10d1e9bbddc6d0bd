"""Output that is damaged on purpose: ``bpe verify`` names it, ``--resume`` makes it again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import InputError, VerificationError
from pipelines.settings import AppendSettings, InputSettings
from tests import jobs
from tests.cli.process import bpe
from tests.faults.running import outcome
from tests.pipelines.corpora import count, encode, flip, train, write_jsonl
from tests.shared_data import LONG

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.conftest import Undisturbed

    Damage = Callable[[Path], None]

COUNTS = "model/counts"
APPENDING = AppendSettings(append=True)


def swap(path: Path) -> None:
    """Two sound parts of one corpus, each under the name of the other."""
    other = min(one for one in path.parent.iterdir() if one != path)
    data = path.read_bytes()
    shutil.copy(other, path)
    other.write_bytes(data)


@pytest.mark.parametrize("kind", ["ids", COUNTS])
@pytest.mark.parametrize("damage", [flip, swap, Path.unlink])
def test_nothing_is_made_of_a_damaged_part(
    small: Undisturbed, tmp_path: Path, kind: str, damage: Damage
) -> None:
    out = shutil.copytree(small.folder / kind, tmp_path / "out")
    path = min(out.glob("data/*-00001-of-*"))
    damage(path)
    uses: list[tuple[str | Path, ...]] = [("report", out)]
    to = ("--output", tmp_path / "never")
    if kind == "ids":
        uses += [("decode", out), ("export", out, "--to", "bin", *to)]
    else:
        said = bpe("train", "--counts", out, "--vocab-size", "300", *to, status=1).stderr
        assert re.search(r"-0000[01]-of-00016\.parquet (is missing|has )", said)
    for use in uses:
        said = bpe(*use, status=1).stderr.splitlines()[-1]
        assert said.startswith("bpe: error: ")
        remedy = "count again" if kind == COUNTS else f"check it with bpe verify {out}"
        assert re.search(rf"-0000[01]-of-.*[:;] {re.escape(remedy)}", said)
    assert not (out / "report.html").exists()


def digits(path: Path) -> list[int]:
    """The digits of a JSON file's values: the first of each line, which always counts."""
    data = path.read_bytes()
    return [found.start(1) for found in re.finditer(rb"(?m)^.*?: [^0-9\n]*([0-9])", data)]


def test_a_flipped_digit_is_found_in_every_manifest(small: Undisturbed, tmp_path: Path) -> None:
    shutil.copytree(small.folder / "ids", tmp_path / "ids")
    shutil.copytree(small.folder / COUNTS, tmp_path / "counts")
    corpus, into = tmp_path / "in", tmp_path / "appended"
    inputs = InputSettings(patterns=(f"{corpus}/*.jsonl",))
    for number in range(2):
        write_jsonl(corpus / f"{number}.jsonl", [f"text {number}"])
        encode(inputs, small.folder / "t.json", into / "ids", appending=APPENDING)
        count(inputs, into / "counts", appending=APPENDING)
    manifests = sorted(tmp_path.rglob("manifest*.json"))
    assert len(manifests) == 6  # two of counts, of the jobs that made them
    for path in manifests:
        out = path.parent
        data = bytearray(path.read_bytes())
        places = digits(path)
        assert len(places) > 1
        places = places if LONG else places[:: len(places) // 2 or 1]
        for place in places:
            data[place] ^= 1
            path.write_bytes(data)
            with pytest.raises((InputError, VerificationError), match=re.escape(path.name)):
                jobs.verify(directory=str(out))
            data[place] ^= 1
        path.write_bytes(data)
        jobs.verify(directory=str(out))


@pytest.mark.parametrize("kind", ["ids", pytest.param(COUNTS, marks=pytest.mark.long)])
def test_a_manifest_without_its_checksum_is_refused(
    small: Undisturbed, tmp_path: Path, kind: str
) -> None:
    out = shutil.copytree(small.folder / kind, tmp_path / "out")
    value = json.loads((out / "manifest.json").read_bytes())
    del value["checksum"]
    (out / "manifest.json").write_text(json.dumps(value))
    with pytest.raises((InputError, VerificationError), match=r"manifest\.json: checksum mismatch"):
        jobs.verify(directory=str(out))


def test_another_number_is_found_in_what_a_training_told(
    small: Undisturbed, tmp_path: Path
) -> None:
    out = shutil.copytree(small.folder / "model", tmp_path / "model")
    bpe("verify", out)
    path = out / "training.json"
    value = json.loads(path.read_bytes())
    value["merges"][-1]["tokens_left"] ^= 1
    path.write_text(json.dumps(value))
    assert "training.json: checksum mismatch" in bpe("verify", out, status=1).stderr
    train(out, inputs=small.inputs, resume=True)
    assert outcome(out) == small.made("train")
