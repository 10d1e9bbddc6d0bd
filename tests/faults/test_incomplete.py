"""Output that looks complete and is not: every command that takes a directory says so."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import VerificationError
from pipelines.output.names import manifest_bytes
from tests import jobs
from tests.cli.process import bpe, refused
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import Undisturbed
    from tests.faults.whole import WholeJob

NOT_FINISHED = "no manifest.json: no finished job left its output here"


def test_every_command_names_an_encoding_that_was_killed(
    small: Undisturbed, tmp_path: Path
) -> None:
    killed = shutil.copytree(small.folder / "ids", tmp_path / "ids")
    (killed / "manifest.json").unlink()
    min(killed.glob("data/train-*")).unlink()
    other = small.folder / "t.json"
    inputs = ("--input", small.corpus)
    out = ("--output", tmp_path / "out")
    for command in (
        ("verify", killed),
        ("verify", killed, *inputs),
        ("decode", killed),
        ("report", killed),
        ("compare", killed, other, *inputs),
        ("show", killed, "word"),
        ("convert", killed, tmp_path / "t.tiktoken"),
        ("compare", killed, other),
        ("compare", other, f"same={other}", "--counts", killed),
        ("train", "--counts", killed, *out, "--vocab-size", "300"),
        ("encode", "--tokenizer", killed, *inputs, *out),
    ):
        refused(f"{killed}: {NOT_FINISHED}", *command, cwd=tmp_path)


UNTRAINED = ["encoded", "training.json", "tokenizer.json"]
NO_TOKENIZER = "no tokenizer.json: no finished training left its tokenizer"
KILLED = {  # the files that are not there, the folder that is named, and why
    "while it encoded": (["encoded/manifest.json"], "encoded", NOT_FINISHED),
    "before it encoded": (["encoded"], "encoded", NOT_FINISHED),
    "while it trained": (UNTRAINED, "", NO_TOKENIZER),
    "after it counted": ([*UNTRAINED, ".plan.json"], "", NOT_FINISHED),
}


@pytest.mark.parametrize("when", KILLED)
def test_a_run_that_was_killed(whole: WholeJob, tmp_path: Path, when: str) -> None:
    """Some files are not there yet, and the folder that lacks them is named."""
    lacks, named, message = KILLED[when]
    out = shutil.copytree(whole.disk, tmp_path / "out")
    for name in lacks:
        shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink()
    for command in ("verify", "report"):
        refused(f"{out / named}: {message}", command, out, cwd=tmp_path)
    bpe("verify", out / "counts", "-q")
    if named:
        bpe("show", out, "word")  # the tokenizer is complete
    elif message != NOT_FINISHED:
        refused(f"{out}: {message}", "show", out, "word", cwd=tmp_path)


def test_a_finished_run_is_verified_in_full(whole: WholeJob, tmp_path: Path) -> None:
    """Counts, tokenizer and encoded corpus, each damage of each."""
    out = shutil.copytree(whole.disk, tmp_path / "out")
    done = bpe("verify", out, "--input", whole.corpus, "--json", "-q")
    found = json.loads(done.stdout)
    assert list(found) == ["counts", "tokenizer", "encoded"]
    assert found["counts"]["compared"]
    assert found["encoded"]["compared"]
    part = min(out.glob("encoded/data/train-*"))
    part.write_bytes(part.read_bytes()[:-1])
    done = bpe("verify", out, status=1)
    assert f"{part} has" in done.stderr


def test_a_run_whose_tokenizer_was_trained_again(whole: WholeJob, tmp_path: Path) -> None:
    out = shutil.copytree(whole.disk, tmp_path / "out")
    again = ("--output", out, "--vocab-size", "290", "--overwrite", "-q")
    bpe("train", "--counts", out / "counts", *again)
    done = bpe("verify", out, status=1)
    assert f"{out / 'encoded'} was encoded with another tokenizer" in done.stderr


@pytest.mark.parametrize("of", long_but(["counts", "encoded"], "encoded"))
def test_the_manifest_of_another_directory(
    small: Undisturbed, whole: WholeJob, tmp_path: Path, of: str
) -> None:
    """Of the other kind, and of the same kind."""
    directories = {"encoded": small.folder / "ids", "counts": small.folder / "model" / "counts"}
    out = shutil.copytree(directories.pop(of), tmp_path / "out")
    (other,) = directories.values()
    shutil.copy(other / "manifest.json", out)
    for command in ("verify", "report"):
        refused("it is the manifest of another directory", command, out, cwd=tmp_path)
    shutil.copy(whole.disk / of / "manifest.json", out)
    done = bpe("verify", out, status=1)
    assert "bpe: error:" in done.stderr
    assert "verified" not in done.stdout


EXTRA = (
    *("train-99998-of-99999.parquet", "validation-00000-of-00001.parquet"),
    *("more/train-00000-of-00001.parquet", ".notes", "README.md"),
)


@pytest.mark.parametrize("kind", ["ids", "model/counts"])
def test_what_the_manifest_does_not_name(small: Undisturbed, tmp_path: Path, kind: str) -> None:
    """Readers of ``data/`` would read it, or fail on it."""
    out = shutil.copytree(small.folder / kind, tmp_path / "out")
    for name in EXTRA:
        extra = out / "data" / name
        extra.parent.mkdir(exist_ok=True)
        shutil.copy(next((out / "data").glob("*.parquet")), extra)
        first = out / "data" / name.partition("/")[0]
        with pytest.raises(VerificationError, match=f"{first} is not named in the manifest"):
            jobs.verify(directory=str(out))
        shutil.rmtree(first) if first.is_dir() else first.unlink()


def test_what_a_tokenizer_lies_beside_does_not_matter(small: Undisturbed, tmp_path: Path) -> None:
    """A manifest of another program, and a folder that is none of ours."""
    shutil.copy(small.folder / "t.json", tmp_path / "tokenizer.json")
    (tmp_path / "manifest.json").write_bytes(manifest_bytes({"name": "my model"}))
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts" / "notes.txt").write_text("mine")
    assert "verified" in bpe("verify", tmp_path).stdout
    bpe("show", tmp_path, "word")
