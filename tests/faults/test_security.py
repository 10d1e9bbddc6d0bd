"""Names, links and files that somebody made to do harm, through the command line.

Tokenizer files that ask for memory without bound: tests/bpe/test_formats_hostile.py.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import JobError
from tests.cli.process import BPE, ROOT, bpe, environment
from tests.faults.running import outcome
from tests.pipelines.corpora import encode, train, tree

if TYPE_CHECKING:
    from tests.faults.conftest import Undisturbed

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
    for name in NAMES:  # each by itself, as a name and not as a pattern
        one = Path(os.fsdecode(os.path.join(folder, name)))  # noqa: PTH118
        if name == NAMES[-1]:
            one.write_text('{"text": 1}\n')
            done = bpe("count", "--input", os.fsencode(one), "--output", tmp_path / "x", status=1)
            assert "\x1b" not in done.stderr
            assert done.stderr.count("\n") <= 3


def test_yaml_that_grows_is_refused(tmp_path: Path) -> None:
    """The billion laughs: aliases of aliases."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    config = tmp_path / "job.yaml"
    config.write_text("\n".join(lines) + "\ninput: *a11\n")
    done = bpe("run", config, status=2)
    assert done.stderr.startswith("bpe: error:")
    assert len(done.stderr) < 2000


def test_nothing_that_is_read_from_files_is_unpickled() -> None:
    """Pickles travel between our own processes alone: descriptors of work (elements.py)."""
    users = [
        str(path.relative_to(ROOT))
        for package in ("bpe", "pipelines")
        for path in sorted((ROOT / package).rglob("*.py"))
        if re.search(r"(import|from) (pickle|dill|cloudpickle|marshal|shelve)\b", path.read_text())
    ]
    # What comparing.py reads back must have the SHA-256 that its job wrote.
    assert set(users) <= {"pipelines/elements.py", "pipelines/compare/plan.py"}
    unsafe = [
        str(path)
        for package in ("bpe", "pipelines")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"yaml\.(load|unsafe_load|full_load)\(|\beval\(|\bexec\(", path.read_text())
    ]
    assert unsafe == []


def outside(tmp_path: Path) -> Path:
    """A folder that no job knows of, with something in it."""
    folder = tmp_path / "outside"
    (folder / "counts").mkdir(parents=True)
    (folder / "precious").write_text("mine")
    (folder / "counts" / "precious").write_text("mine")
    return folder


@pytest.mark.parametrize("resume", [False, True])
def test_links_in_the_output_lead_nowhere(small: Undisturbed, tmp_path: Path, resume: bool) -> None:
    """Files of a job are links to a file outside: they are replaced or refused, never followed."""
    away = outside(tmp_path)
    before = tree(away)
    part = next(name for name in sorted(small.made("encode")) if name.startswith("data/"))
    for name in (part, "manifest.json", "tokenizer.json", ".plan.json", "dead-letters"):
        out = tmp_path / "out"
        shutil.copytree(small.folder / "ids", out)
        link = out / name
        if link.exists():
            link.unlink()
        link.symlink_to(away if name == "dead-letters" else away / "precious")
        refused = None
        try:
            encode(small.inputs, small.folder / "t.json", out, overwrite=not resume, resume=resume)
        except JobError as error:
            refused = str(error)
        if refused is None:
            assert outcome(out) == small.made("encode"), name
            assert not link.is_symlink()
        else:
            assert name in refused
        assert tree(away) == before, name
        shutil.rmtree(out)


@pytest.mark.parametrize(
    ("name", "how"), [("encoded", []), ("encoded", ["--resume"]), ("counts", ["--overwrite"])]
)
def test_linked_folders_of_a_run_are_refused(
    small: Undisturbed, tmp_path: Path, name: str, how: list[str]
) -> None:
    """Before anything is counted, also where the link leads to a folder that is empty."""
    away, out = outside(tmp_path), tmp_path / "out"
    (away / "encoded").mkdir()
    before = sorted(away.rglob("*"))
    out.mkdir()
    (out / name).symlink_to(away / name)
    config = tmp_path / "job.yaml"
    config.write_text(
        json.dumps({"input": [str(small.corpus)], "output": str(out), "vocab_size": 300})
    )
    done = bpe("run", config, *how, "-q", status=1)
    (error,) = done.stderr.splitlines()
    assert f"bpe: error: {out / name} is a link, which may lead out of {out}: remove it" in error
    assert sorted(away.rglob("*")) == before
    assert list(out.iterdir()) == [out / name]


@pytest.mark.parametrize("name", ["tokenizer.json", "training.json"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_linked_tokenizer_is_refused(
    small: Undisturbed, tmp_path: Path, name: str, resume: bool
) -> None:
    away, out = outside(tmp_path), tmp_path / "out"
    before = tree(away)
    shutil.copytree(small.folder / "model", out)
    (out / name).unlink()
    (out / name).symlink_to(away / "precious")
    with pytest.raises(
        JobError, match=re.escape(f"{out} holds '{name}', which bpe train does not leave")
    ):
        train(out, inputs=small.inputs, overwrite=not resume, resume=resume)
    assert tree(away) == before


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_a_tokenizer_file_cannot_ask_for_memory(tmp_path: Path) -> None:
    """Through the command line, with 4 GiB of address space: an error, not the end of a machine."""
    ids = {"a": 0, "b": 1, "ab": 2**31 - 2}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "BPE", "vocab": ids, "merges": ["a b"]}}))
    limit = 4 << 30
    done = subprocess.run(
        [*BPE, "verify", path],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 1
    assert done.stderr.startswith("bpe: error:")
    assert "memory" not in done.stderr.replace("memory that", "")
