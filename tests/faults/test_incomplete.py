"""Output that looks complete and is not: every command that takes a directory says so."""

from __future__ import annotations

import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from pipelines.output.names import manifest_bytes
from tests.cli.process import bpe
from tests.faults.running import running, until
from tests.faults.test_killed import parts
from tests.pipelines.corpora import write_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.conftest import Undisturbed
    from tests.faults.whole import WholeJob

NOT_FINISHED = "no manifest.json: no finished job left its output here"


def kill(command: list[str | Path], moment: Callable[[], object]) -> None:
    """End a job by SIGKILL at a moment of its work."""
    with running(*command) as process:
        until(moment, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL


def refused(says: str, *arguments: str | Path) -> None:
    done = bpe(*arguments, status=1)
    assert says in done.stderr, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def killed(undisturbed: Undisturbed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoding that was killed after its second part."""
    out = tmp_path_factory.mktemp("killed") / "ids"
    kill(undisturbed.command("encode", out), lambda: len(parts(out)) >= 2)
    assert (out / "tokenizer.json").exists()
    return out


@pytest.fixture(scope="module")
def run(whole: WholeJob, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed while it encoded."""
    folder = tmp_path_factory.mktemp("run")
    out = folder / "out"
    kill(whole.command(folder / "job.yaml", out), lambda: len(parts(out / "encoded")) >= 2)
    return out


def test_every_command_names_an_encoding_that_was_killed(
    killed: Path, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    other = undisturbed.folder / "t.json"
    inputs = ("--input", undisturbed.corpus)
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
        refused(f"{killed}: {NOT_FINISHED}", *command)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["encode", "count"])
@pytest.mark.parametrize("plan", [True, False], ids=["plan", "hidden-files-left-behind"])
def test_output_without_its_manifest_is_not_complete(
    small: Undisturbed, tmp_path: Path, kind: str, plan: bool
) -> None:
    made = small.folder / ("ids" if kind == "encode" else "model/counts")
    out = tmp_path / "out"
    shutil.copytree(made, out)
    (out / "manifest.json").unlink()
    if not plan:
        for hidden in out.glob(".*"):
            hidden.unlink()
    for command in ("verify", "report") + (("decode",) if kind == "encode" else ()):
        refused(f"{out}: {NOT_FINISHED}", command, out)


def test_a_run_that_was_killed_while_it_encoded(run: Path) -> None:
    for command in ("verify", "report"):
        refused(f"{run / 'encoded'}: {NOT_FINISHED}", command, run)
    refused(f"{run / 'encoded'}: {NOT_FINISHED}", "verify", run / "encoded")
    bpe("verify", run / "counts", "-q")
    bpe("show", run, "word")  # the tokenizer is complete


def test_a_run_that_was_killed_before_it_encoded(run: Path, tmp_path: Path) -> None:
    """The tokenizer is there, and nothing of what the run makes next."""
    out = tmp_path / "out"
    shutil.copytree(run, out)
    shutil.rmtree(out / "encoded")
    for command in ("verify", "report"):
        refused(f"{out / 'encoded'}: {NOT_FINISHED}", command, out)


def test_a_run_whose_counts_alone_are_complete(whole: WholeJob, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill(whole.command(tmp_path / "job.yaml", out), (out / "counts" / "manifest.json").exists)
    shutil.rmtree(out / "encoded", ignore_errors=True)
    for name in (".plan.json", "training.json", "tokenizer.json"):  # where it came further
        (out / name).unlink(missing_ok=True)
    for command in ("verify", "report"):
        refused(f"{out}: {NOT_FINISHED}", command, out)


def test_a_training_that_was_killed(undisturbed: Undisturbed, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill(undisturbed.command("train", out), (out / ".plan.json").exists)
    for command in (("verify", out), ("report", out), ("show", out, "word")):
        refused(f"{out}: no tokenizer.json: no finished training left its tokenizer", *command)


def test_a_finished_run_is_verified_in_full(whole: WholeJob, tmp_path: Path) -> None:
    """Counts, tokenizer and encoded corpus, each damage of each."""
    out = tmp_path / "out"
    shutil.copytree(whole.folder / "disk", out)
    done = bpe("verify", out, "--input", whole.corpus, "--json", "-q")
    found = json.loads(done.stdout)
    assert list(found) == ["counts", "tokenizer", "encoded"]
    assert found["counts"]["compared"]
    assert found["encoded"]["compared"]
    assert bpe("verify", out).stdout.count("verified") == 3
    part = parts(out / "encoded")[0]
    part.write_bytes(part.read_bytes()[:-1])
    done = bpe("verify", out, status=1)
    assert f"{part} has" in done.stderr


def test_a_run_whose_tokenizer_was_trained_again(whole: WholeJob, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole.folder / "disk", out)
    again = ("--output", out, "--vocab-size", "290", "--overwrite", "-q")
    bpe("train", "--counts", out / "counts", *again)
    done = bpe("verify", out, status=1)
    assert f"{out / 'encoded'} was encoded with another tokenizer" in done.stderr


@pytest.mark.parametrize("of", ["counts", "encoded"])
def test_the_manifest_of_another_directory(small: Undisturbed, tmp_path: Path, of: str) -> None:
    """Of the other kind, and of the same kind."""
    out, counts = tmp_path / "out", small.folder / "model" / "counts"
    mine, other = (
        (counts, small.folder / "ids") if of == "counts" else (small.folder / "ids", counts)
    )
    shutil.copytree(mine, out)
    shutil.copy(other / "manifest.json", out / "manifest.json")
    for command in ("verify", "report"):
        refused("it is the manifest of another directory", command, out)
    write_jsonl(tmp_path / "text" / "a.jsonl", ["another text"])
    how = ("--tokenizer", small.folder / "t.json") if of == "encoded" else ()
    where = ("--input", tmp_path / "text", "--output", tmp_path / "another", "-q")
    bpe("count" if of == "counts" else "encode", *where, *how)
    shutil.copy(tmp_path / "another" / "manifest.json", out / "manifest.json")
    done = bpe("verify", out, status=1)
    assert "bpe: error:" in done.stderr
    assert "verified" not in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "train-99998-of-99999.parquet",
        "validation-00000-of-00001.parquet",
        "more/train-00000-of-00001.parquet",
        ".notes",
        "README.md",
    ],
)
@pytest.mark.parametrize("kind", ["encode", "count"])
def test_what_the_manifest_does_not_name(
    small: Undisturbed, tmp_path: Path, kind: str, name: str
) -> None:
    """Readers of ``data/`` would read it, or fail on it."""
    out = tmp_path / "out"
    shutil.copytree(small.folder / ("ids" if kind == "encode" else "model/counts"), out)
    extra = out / "data" / name
    extra.parent.mkdir(exist_ok=True)
    shutil.copy(next((out / "data").glob("*.parquet")), extra)
    first = out / "data" / name.partition("/")[0]
    refused(f"{first} is not named in the manifest", "verify", out)


def test_dead_letters_of_counts_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "good"}\nbad\n')
    where = ("--input", tmp_path / "a.jsonl", "--output", tmp_path / "out", "-q")
    bpe("count", *where, "--max-failures", "1")
    bpe("verify", tmp_path / "out", "-q")
    shutil.rmtree(tmp_path / "out" / "dead-letters")
    name = "dead-letters/part-00000-of-00001.jsonl"
    refused(f"{name} is missing, the manifest names it", "verify", tmp_path / "out")


def test_what_a_tokenizer_lies_beside_does_not_matter(small: Undisturbed, tmp_path: Path) -> None:
    """A manifest of another program, and a folder that is none of ours."""
    shutil.copy(small.folder / "t.json", tmp_path / "tokenizer.json")
    (tmp_path / "manifest.json").write_bytes(manifest_bytes({"name": "my model"}))
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts" / "notes.txt").write_text("mine")
    assert "verified" in bpe("verify", tmp_path).stdout
    bpe("show", tmp_path, "word")
