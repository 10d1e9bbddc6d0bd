from __future__ import annotations

import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.splits import plan_splits
from pipelines.errors import ConfigError, InputError
from pipelines.settings import InputSettings
from tests.pipelines.corpus_files import read_blocks
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.corpus.files import InputFile
    from pipelines.corpus.inputs import Inputs


def listed(*patterns: Path | str, format_: str = "auto") -> Inputs:
    settings = InputSettings(patterns=tuple(map(str, patterns)), format=format_)  # type: ignore[arg-type]
    return find_inputs(settings)


def find(*patterns: Path | str, format_: str = "auto") -> list[InputFile]:
    return list(listed(*patterns, format_=format_).files)


def passed_over(*patterns: Path | str) -> list[str]:
    return [str(one) for one in listed(*patterns).passed_over]


def names(*patterns: Path | str) -> list[str]:
    return [file.name for file in find(*patterns)]


def make(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


@pytest.fixture
def in_store(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    """Copies a folder to a store; gives its URL."""
    objects: dict[str, bytes] = {}
    monkeypatch.setattr(ObjectStore, "objects", objects)

    def copied(folder: Path) -> str:
        files = (path for path in folder.rglob("*") if path.is_file())
        objects.update({f"store://bucket{path}": path.read_bytes() for path in files})
        return f"store://bucket{folder}"

    return copied


FOLDERS: dict[str, tuple[tuple[str, ...], dict[str, list[str]]]] = {
    "names are below the deepest common folder": (
        ("x/one/1.txt", "x/two/2.txt", "x/two/deep/3.txt"),
        {"": ["one/1.txt", "two/2.txt", "two/deep/3.txt"], "x/two": ["2.txt", "deep/3.txt"]},
    ),
    "a glob stays in its folder, and two stars do not": (
        ("1.py", "a/2.py", "a/b/3.py", "a/b/3.txt", "a/b/33.py"),
        {
            "*.py": ["1.py"],
            "*/*.py": ["2.py"],
            "**/*.py": ["1.py", "a/2.py", "a/b/3.py", "a/b/33.py"],
            "**.py": ["1.py", "a/2.py", "a/b/3.py", "a/b/33.py"],
            "a/**/b/**/3.*": ["3.py", "3.txt"],
            "**/?.py": ["1.py", "a/2.py", "a/b/3.py"],
            "a/b/3[.3]*": ["3.py", "3.txt", "33.py"],
            "a/b/3[!.]*": ["33.py"],
        },
    ),
    "a folder with the characters of globs is walked": (
        ("data[1]*/a.txt", "data1/b.txt"),
        {"data[1]*": ["a.txt"], "data[1]*/": ["a.txt"]},
    ),
    "hidden files and markers are passed over unless named": (
        (
            *("a.txt", ".hidden", ".git/x", "_SUCCESS", "__pycache__/a.pyc", "_private.py"),
            *("part.crc/_SUCCESS", "_temporary/0/part"),
        ),
        {
            "": ["_private.py", "a.txt"],
            "*": ["_private.py", "a.txt"],
            "**": ["_private.py", "a.txt"],
            ".hidden": [".hidden"],
            "_SUCCESS": ["_SUCCESS"],
            ".git": ["x"],
        },
    ),
    "records, whose names may begin as those of files about the data": (
        ("LICENSES.json", "README.jsonl", "b.pq", "c.json.zst", "readme_texts.parquet"),
        {"": ["LICENSES.json", "README.jsonl", "b.pq", "c.json.zst", "readme_texts.parquet"]},
    ),
    "text of any name, sorted by path": (
        ("b.py", "a.txt", "a/z", "Z.md.gz", "ä.txt"),
        {"": ["Z.md.gz", "a.txt", "a/z", "b.py", "ä.txt"]},
    ),
}


@pytest.mark.parametrize("store", [False, True], ids=["disk", "store"])
@pytest.mark.parametrize("case", FOLDERS)
def test_a_pattern_finds(
    tmp_path: Path, in_store: Callable[[Path], str], case: str, store: bool
) -> None:
    files, expected = FOLDERS[case]
    make(tmp_path, *files)
    root = in_store(tmp_path) if store else str(tmp_path)
    assert {pattern: names(f"{root}/{pattern}") for pattern in expected} == expected


def test_a_relative_glob_is_looked_for_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "with [brackets]"
    make(folder, "1.txt", "a/2.txt")
    monkeypatch.chdir(folder)
    assert names("*.txt") == ["1.txt"]
    assert names("a/*") == ["2.txt"]
    assert names(".") == names("**") == ["1.txt", "a/2.txt"]
    assert all(Path(file.path).is_absolute() for file in find("*.txt"))


ODD = [
    *("a b.txt", "[x].txt", "st*r.txt", "who?.txt", "new\nline.txt", "日本語 ñ.txt", " .txt"),
    *("back\\slash.txt", "'\"$(x).txt", "colon:1.txt", "e\u0301.txt", "a #1?x.txt", "b%20c.txt"),
]


@pytest.mark.parametrize("store", [False, True], ids=["disk", "store"])
@pytest.mark.parametrize("name", ODD)
def test_an_existing_file_is_taken_literally(
    tmp_path: Path, in_store: Callable[[Path], str], name: str, store: bool
) -> None:
    make(tmp_path, name, "x.txt")
    root = in_store(tmp_path) if store else str(tmp_path)
    (file,) = find(f"{root}/{name}")
    assert (file.name, file.path, file.size) == (name, f"{root}/{name}", len(name.encode()))
    (split,) = plan_splits([file])
    (block,) = read_blocks(split.pieces[0], ReadOptions())
    assert block.texts.to_pylist() == block.ids.to_pylist() == [name]
    assert sorted(names(root)) == sorted(names(f"{root}/*.txt")) == sorted([name, "x.txt"])


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are Unicode there")
def test_a_file_name_that_is_not_utf8_is_written_with_escapes(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("text")
    (found,) = find(tmp_path)
    assert found.name == "caf\\xe9.txt"
    (split,) = plan_splits([found])
    (block,) = read_blocks(split.pieces[0], ReadOptions())
    assert block.ids.to_pylist() == ["caf\\xe9.txt"]


def test_links_to_files_are_read_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "data/a.txt", "elsewhere/b.txt")
    (tmp_path / "data/link.txt").symlink_to(tmp_path / "elsewhere/b.txt")
    (tmp_path / "data/loop").symlink_to(tmp_path / "data")
    assert names(tmp_path / "data") == ["a.txt", "link.txt"]
    (tmp_path / "entry").symlink_to(tmp_path / "data")
    assert names(tmp_path / "entry") == ["a.txt", "link.txt"]


@pytest.mark.parametrize("pattern", ["nothing.txt", "no/folder/*.txt"])
def test_a_pattern_without_files_says_what_was_looked_for(tmp_path: Path, pattern: str) -> None:
    make(tmp_path, "there.log")
    with pytest.raises(InputError, match=f"no file matches .*{re.escape(pattern)}'"):
        find(tmp_path / "there.log", tmp_path / pattern)


def test_a_link_that_leads_nowhere_is_an_error_when_named_and_told_when_listed(
    tmp_path: Path,
) -> None:
    make(tmp_path, "a.txt", "b/c.txt")
    (tmp_path / "broken.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle.txt").symlink_to(tmp_path / "circle.txt")
    (tmp_path / "folder.txt").symlink_to(tmp_path / "b")
    with pytest.raises(InputError, match=r"broken\.txt"):
        find(tmp_path / "broken.txt")
    assert names(tmp_path / "*") == names(tmp_path / "*.txt") == ["a.txt"]
    assert passed_over(tmp_path / "*.txt") == [
        f"passed over 2 files, links that lead nowhere ({tmp_path}/broken.txt)",
        f"passed over 1 file, links to folders ({tmp_path}/folder.txt)",
    ]
    assert passed_over(tmp_path / "a*") == []
    (tmp_path / "a.txt").unlink()
    with pytest.raises(InputError, match="2 files, links that lead nowhere"):
        find(tmp_path / "*.txt")


def test_files_about_the_data_are_passed_over_by_name(tmp_path: Path) -> None:
    about = ["README.md", "readme", "Readme.txt", "LICENSE", "LICENSE-MIT.txt", "LICENCE.txt"]
    make(tmp_path, *about, ".gitattributes", "b/README_fr.md", "a.jsonl", "b/c.jsonl")
    assert names(tmp_path) == names(tmp_path / "**") == ["a.jsonl", "b/c.jsonl"]
    (told,) = passed_over(tmp_path)
    assert told.startswith(f"passed over 8 files, by their names ({tmp_path}/.gitattributes); ")
    assert told.endswith("to read one, name it in full")
    assert passed_over(tmp_path / "*.jsonl") == []
    assert names(tmp_path / "README.md") == ["README.md"]
    for pattern in ("README.*", ".git*"):
        with pytest.raises(InputError, match="to read one, name it in full"):
            find(tmp_path / pattern)
    assert {file.format for file in find(tmp_path, format_="lines")} == {"lines"}
    assert len(find(tmp_path, format_="lines")) == 9


@pytest.mark.parametrize("pattern", ["", "*", "**", "**/*"])
def test_records_and_text_in_one_folder_are_an_error(tmp_path: Path, pattern: str) -> None:
    make(tmp_path, "a.jsonl", "b.ndjson.gz", "c.parquet", "notes.txt", "d", "README.md")
    with pytest.raises(InputError) as raised:
        find(tmp_path / pattern)
    assert "2 jsonl (a.jsonl), 1 parquet (c.parquet), 2 text (d)" in str(raised.value)
    assert "`format`" in str(raised.value)
    assert "'*.jsonl'" in str(raised.value)
    assert len(find(tmp_path / pattern, format_="lines")) == 6
    assert names(tmp_path / "*.jsonl") == ["a.jsonl"]
    assert {file.format for file in find(tmp_path / "*.jsonl", tmp_path / "notes.txt")} == {
        "jsonl",
        "text",
    }


def test_brackets_hold_characters_of_globs(tmp_path: Path) -> None:
    make(tmp_path, "a\\b.jsonl", "[a].jsonl", "a.jsonl")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert names(tmp_path / "[[]a].jsonl") == ["[a].jsonl"]
        assert names(tmp_path / "*[\\]*") == ["a\\b.jsonl"]
    with pytest.raises(InputError, match="not a valid pattern"):
        find(tmp_path / "[z-a].jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_without_permission_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "secret/b.txt")
    (tmp_path / "secret").chmod(0)
    try:
        with pytest.raises(InputError, match="secret"):
            find(tmp_path)
    finally:
        (tmp_path / "secret").chmod(0o700)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a directory"):
        find(tmp_path / "pipe")
    make(tmp_path, "a.txt")
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    ("name", "format_", "compression"),
    [
        ("a.ndjson.zst", "jsonl", "zst"),
        ("a.json.gz", "jsonl", "gz"),
        ("A.JSONL.GZ", "jsonl", "gz"),
        ("a.txt.bz2", "text", "bz2"),
        ("a.xz", "text", "xz"),
        ("a.txt.bak", "text", "none"),
        ("a.csv.txt", "text", "none"),
        ("package.json.html", "text", "none"),
        ("jsonl", "text", "none"),
    ],
)
def test_format_and_compression_follow_the_suffix(
    tmp_path: Path, name: str, format_: str, compression: str
) -> None:
    make(tmp_path, name)
    (file,) = find(tmp_path / name)
    assert (file.format, file.compression) == (format_, compression)


REFUSED = dict.fromkeys(["a.zip", "a.tar.gz", "a.jsonl.lz4", "a.parquet.gz"], "unpack")
REFUSED |= dict.fromkeys(
    [
        *("a.csv", "A.TSV", "b/a.csv.gz", "a.avro", "a.jsonl.bak", "a.jsonl~", "a.parquet.old"),
        *("a.jsonl.gz.bak", "a.jsonl.bak.gz", "a.json.2026-11-21", "a.csv.1", "a.jsonl.orig.bak"),
    ],
    "holds records .*say `format`",
)


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_is_not_read_is_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    make(tmp_path, name)
    for pattern in (tmp_path / name, tmp_path):
        with pytest.raises(InputError, match=REFUSED[name]) as raised:
            find(pattern)
        assert name in str(raised.value)
    (file,) = find(tmp_path / name, format_="text")
    assert file.format == "text"


def test_patterns_of_several_places(tmp_path: Path, in_store: Callable[[Path], str]) -> None:
    make(tmp_path, "x/1.txt", "x1.txt")
    again = (tmp_path, tmp_path / "*", tmp_path / "x1.txt", f"{tmp_path}/x/../x1.txt")
    assert names(*again) == ["x/1.txt", "x1.txt"]  # each once
    root = in_store(tmp_path)
    paths = [str(tmp_path / "x1.txt"), f"{root}/x/1.txt"]
    assert names(*paths) == paths
    with pytest.raises(InputError, match="no file matches"):
        find(f"{root}/x/*.md")
    with pytest.raises(ConfigError, match="names with //"):
        find(f"{root}//x/1.txt")


def test_the_output_of_a_job_is_no_input_unless_named(
    tmp_path: Path, in_store: Callable[[Path], str]
) -> None:
    make(tmp_path, "corpus/1.jsonl", "corpus/out/counts/manifest.json", "corpus/else/x.json")
    for folder in ("", "/corpus/out", "/corpus/else"):
        program = "another" if folder == "/corpus/else" else "beam-bpe"
        plan = Path(f"{tmp_path}{folder}/.plan.json")
        plan.write_text(json.dumps({"program": program}))
    assert names(tmp_path) == ["1.jsonl", "else/x.json"]
    assert names(tmp_path / "**" / "*.json") == ["x.json"]
    assert names(in_store(tmp_path)) == ["1.jsonl", "else/x.json"]
    assert names(tmp_path / "corpus" / "out") == ["manifest.json"]
