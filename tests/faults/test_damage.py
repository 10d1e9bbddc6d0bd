"""Output that is damaged on purpose: ``bpe verify`` names it, ``--resume`` makes it again."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pipelines import jobs
from pipelines.errors import InputError, JobError, VerificationError
from tests.cli.process import bpe
from tests.faults.running import outcome
from tests.pipelines.corpora import count, encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.conftest import Undisturbed


def flip(path: Path, undisturbed: Undisturbed) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path, undisturbed: Undisturbed) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def remove(path: Path, undisturbed: Undisturbed) -> None:
    path.unlink()


def empty(path: Path, undisturbed: Undisturbed) -> None:
    path.write_bytes(b"")


def of_another_run(path: Path, undisturbed: Undisturbed) -> None:
    """A whole and sound file of the same name, from a job over other documents."""
    other = path.parent.parent / "other"
    docs = (undisturbed.corpus / "docs.jsonl").read_text("utf-8").splitlines(keepends=True)
    (other / "corpus").mkdir(parents=True)
    (other / "corpus" / "docs.jsonl").write_text("".join(docs[:1]) * len(docs), "utf-8")
    inputs = type(undisturbed)(other, undisturbed.split).inputs
    if "ids" in path.parent.name:
        encode(inputs, undisturbed.folder / "t.json", other / "out")
    else:
        count(inputs, other / "out")
    donors = sorted((other / "out").glob("part-*.parquet"))
    shutil.copy(donors[0], path)


DAMAGE = [flip, truncate, remove, empty, of_another_run]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["ids", "counts"])
def test_a_damaged_part_is_found_and_made_again(
    small: Undisturbed,
    tmp_path: Path,
    kind: str,
    damage: Callable[[Path, Undisturbed], None],
) -> None:
    source = small.folder / "ids"
    if kind == "counts":
        source = small.folder / "model" / "counts"
    out = shutil.copytree(source, tmp_path / kind)
    part = sorted(out.glob("part-*.parquet"))[1]
    damage(part, small)
    with pytest.raises(VerificationError, match=part.name):
        jobs.verify(directory=str(out))
    if kind == "ids":
        again = encode(small.inputs, small.folder / "t.json", out, resume=True)
        assert again.resumed_parts == again.parts - 1
    else:
        assert not count(small.inputs, out, resume=True).resumed
    assert outcome(out) == outcome(source)


def no_json(path: Path, undisturbed: Undisturbed) -> None:
    path.write_text("{")


def another_total(path: Path, undisturbed: Undisturbed) -> None:
    value = json.loads(path.read_bytes())
    value["totals"]["pretokens" if "pretokenizer" in value else "documents"] += 1
    path.write_text(json.dumps(value))


def another_path(path: Path, undisturbed: Undisturbed) -> None:
    value = json.loads(path.read_bytes())
    value["parts"][0]["file"] = "../../elsewhere.parquet"
    path.write_text(json.dumps(value))


@pytest.mark.parametrize("damage", [no_json, empty, truncate, remove, another_total, another_path])
@pytest.mark.parametrize("kind", ["ids", "counts"])
def test_a_damaged_manifest_is_found_and_made_again(
    small: Undisturbed,
    tmp_path: Path,
    kind: str,
    damage: Callable[[Path, Undisturbed], None],
) -> None:
    source = small.folder / "ids"
    if kind == "counts":
        source = small.folder / "model" / "counts"
    out = shutil.copytree(source, tmp_path / kind)
    damage(out / "manifest.json", small)
    with pytest.raises((VerificationError, InputError, JobError)):
        jobs.verify(directory=str(out))
    if kind == "ids":
        encode(small.inputs, small.folder / "t.json", out, resume=True)
    else:
        count(small.inputs, out, resume=True)
    assert outcome(out) == outcome(source)


def test_verify_and_resume_on_the_command_line(small: Undisturbed, tmp_path: Path) -> None:
    out = shutil.copytree(small.folder / "ids", tmp_path / "ids")
    part = min(out.glob("part-*.parquet"))
    flip(part, small)
    done = bpe("verify", out, status=1)
    assert done.stderr.splitlines()[-1].startswith("bpe: error:")
    assert part.name in done.stderr
    bpe(*small.command("encode", out, "--resume"))
    assert outcome(out) == small.made("encode")
