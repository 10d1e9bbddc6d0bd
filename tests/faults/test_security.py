"""Names, links and files that somebody made to do harm, through the command line.

Tokenizer files that ask for memory without bound: tests/bpe/test_formats_hostile.py.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe, refused
from tests.faults.running import outcome
from tests.pipelines.corpora import tree

if TYPE_CHECKING:
    from tests.faults.conftest import Undisturbed
    from tests.faults.whole import WholeJob

NAMES = (
    *(b"with space.jsonl", b"new\nline.jsonl", b"dots..in..jsonl", b"-dash.jsonl", b"--help.jsonl"),
    *(b"not utf-8 \xff.jsonl", b"*?[a].jsonl", b"quote'\".jsonl", b"\x1b[31mred.jsonl"),
)


def jsonl(text: str) -> str:
    return json.dumps({"text": text}) + "\n"


def test_files_of_any_name_are_read_and_named(small: Undisturbed, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    (corpus / "a folder\n of -names").mkdir(parents=True)
    folder = os.fsencode(corpus / "a folder\n of -names")
    for number, name in enumerate(NAMES):
        Path(os.fsdecode(os.path.join(folder, name))).write_text(jsonl(f"text {number}"))  # noqa: PTH118 - bytes
    inputs = ("--input", "corpus/../corpus")
    bpe("count", *inputs, "--output", "counts", "-q", cwd=tmp_path)
    encoded = bpe(
        *("encode", *inputs, "--tokenizer", small.folder / "t.json", "--output", "-ids", "-q"),
        *("--json",),
        cwd=tmp_path,
    )
    assert json.loads(encoded.stdout)["documents"] == len(NAMES)
    bpe("verify", "-q", *inputs, "--", cwd=tmp_path, status=2)
    bpe("verify", "./-ids", *inputs, "-q", cwd=tmp_path)
    bpe("verify", "counts", *inputs, "-q", cwd=tmp_path)
    decoded = bpe("decode", "./-ids", cwd=tmp_path).stdout.splitlines()
    assert {json.loads(line)["text"] for line in decoded} == {
        f"text {number}" for number in range(len(NAMES))
    }


def test_yaml_that_grows_is_refused(tmp_path: Path) -> None:
    """The billion laughs: aliases of aliases."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    config = tmp_path / "job.yaml"
    config.write_text("\n".join(lines) + "\ninput: *a11\n")
    done = bpe("run", config, status=2)
    assert done.stderr.startswith("bpe: error:")
    assert len(done.stderr) < 2000


def outside(tmp_path: Path) -> Path:
    """A folder that no job knows of, with something in it."""
    folder = tmp_path / "outside"
    (folder / "counts").mkdir(parents=True)
    (folder / "precious").write_text("mine")
    (folder / "counts" / "precious").write_text("mine")
    return folder


@pytest.mark.parametrize("how", ["--overwrite", "--resume"])
@pytest.mark.parametrize(
    ("job", "names"),
    [
        ("encode", ["manifest.json", "tokenizer.json", ".plan.json", "dead-letters", "data/"]),
        ("train", ["tokenizer.json", "training.json"]),
    ],
)
def test_links_in_the_output_lead_nowhere(
    small: Undisturbed, tmp_path: Path, job: str, names: list[str], how: str
) -> None:
    """Files of a job are links to a file outside: they are replaced or refused, never followed."""
    away, made = outside(tmp_path), small.made(job)
    before = tree(away)
    for prefix in names:
        name = min((one for one in made if one.startswith(prefix)), default=prefix)
        out = shutil.copytree(small.output(job), tmp_path / "out")
        link = out / name
        if link.exists():
            link.unlink()
        link.symlink_to(away if name == "dead-letters" else away / "precious")
        done = bpe(*small.command(job, out, how), status=None)
        if job == "train":
            assert f"{out} holds '{name}', which bpe train does not leave" in done.stderr
        if done.returncode:
            assert name in done.stderr
        else:
            assert outcome(out) == made, name
            assert not link.is_symlink()
        assert tree(away) == before, name
        shutil.rmtree(out)


@pytest.mark.parametrize(
    ("name", "how"), [("encoded", []), ("encoded", ["--resume"]), ("counts", ["--overwrite"])]
)
def test_linked_folders_of_a_run_are_refused(
    whole: WholeJob, tmp_path: Path, name: str, how: list[str]
) -> None:
    """Before anything is counted, also where the link leads to a folder that is empty."""
    away, out = outside(tmp_path), tmp_path / "out"
    (away / "encoded").mkdir()
    out.mkdir()
    (out / name).symlink_to(away / name)
    run = whole.command(tmp_path / "job.yaml", out)
    message = f"{out / name} is a link, which may lead out of {out}: remove it"
    refused(message, *run, *how, cwd=tmp_path, status=(1,))
