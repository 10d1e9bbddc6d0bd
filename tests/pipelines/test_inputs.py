from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest

from pipelines.corpus.documents import ReadOptions, read_blocks
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.splits import plan_splits
from pipelines.errors import ConfigError, InputError
from pipelines.settings import InputSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.corpus.files import InputFile


def find(*patterns: Path | str, format_: str = "auto") -> list[InputFile]:
    settings = InputSettings(patterns=tuple(map(str, patterns)), format=format_)  # type: ignore[arg-type]
    return list(find_inputs(settings).files)


def passed_over(*patterns: Path | str, format_: str = "auto") -> list[str]:
    settings = InputSettings(patterns=tuple(map(str, patterns)), format=format_)  # type: ignore[arg-type]
    return [str(one) for one in find_inputs(settings).passed_over]


def names(*patterns: Path | str) -> list[str]:
    return [file.name for file in find(*patterns)]


def make(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


def test_a_file_has_its_own_name_and_size(tmp_path: Path) -> None:
    make(tmp_path, "a/b.txt")
    (file,) = find(tmp_path / "a/b.txt")
    assert (file.name, file.path, file.size) == ("b.txt", str(tmp_path / "a/b.txt"), 7)


def test_names_are_below_the_deepest_common_folder(tmp_path: Path) -> None:
    make(tmp_path, "x/one/1.txt", "x/two/2.txt", "x/two/deep/3.txt")
    assert names(tmp_path) == ["one/1.txt", "two/2.txt", "two/deep/3.txt"]
    assert names(tmp_path / "x/two") == ["2.txt", "deep/3.txt"]


def test_files_are_sorted_by_path_and_listed_once(tmp_path: Path) -> None:
    make(tmp_path, "b.txt", "a.txt", "a/z.txt", "Z.txt", "ä.txt")
    expected = ["Z.txt", "a.txt", "a/z.txt", "b.txt", "ä.txt"]
    assert names(tmp_path) == expected
    everything = (tmp_path / "*", tmp_path, tmp_path / "a.txt", f"{tmp_path}/a/../a.txt")
    assert names(*everything) == expected


def test_a_glob_stays_in_its_folder_and_two_stars_do_not(tmp_path: Path) -> None:
    make(tmp_path, "1.py", "a/2.py", "a/b/3.py", "a/b/3.txt", "a/b/33.py")
    assert names(tmp_path / "*.py") == ["1.py"]
    assert names(tmp_path / "*/*.py") == ["2.py"]
    assert names(tmp_path / "**/*.py") == ["1.py", "a/2.py", "a/b/3.py", "a/b/33.py"]
    assert names(tmp_path / "**.py") == ["1.py", "a/2.py", "a/b/3.py", "a/b/33.py"]
    assert names(tmp_path / "a/**/b/**/3.*") == ["3.py", "3.txt"]
    assert names(tmp_path / "**/?.py") == ["1.py", "a/2.py", "a/b/3.py"]
    assert names(tmp_path / "a/b/3[.3]*") == ["3.py", "3.txt", "33.py"]
    assert names(tmp_path / "a/b/3[!.]*") == ["33.py"]


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


@pytest.mark.parametrize(
    "name",
    [
        "a b.txt",
        "[x].txt",
        "st*r.txt",
        "who?.txt",
        "new\nline.txt",
        "日本語 ñ.txt",
        "back\\slash.txt",
        " .txt",
        "'\"$(x).txt",
        "colon:1.txt",
        "e\u0301.txt",
    ],
)
def test_an_existing_file_is_taken_literally(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("text")
    (tmp_path / "x.txt").write_text("other")
    (file,) = find(tmp_path / name)
    assert file.name == name
    (split,) = plan_splits([file])
    (block,) = read_blocks(split.pieces[0], ReadOptions())
    assert block.texts.to_pylist() == ["text"]
    assert block.ids.to_pylist() == [name]
    assert sorted(names(tmp_path)) == sorted([name, "x.txt"])


def test_a_folder_with_glob_characters_is_walked(tmp_path: Path) -> None:
    make(tmp_path, "data[1]*/a.txt", "data1/b.txt")
    assert names(tmp_path / "data[1]*") == ["a.txt"]
    assert names(f"{tmp_path}/data[1]*/") == ["a.txt"]


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are Unicode there")
def test_a_file_name_that_is_not_utf8_is_written_with_escapes(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("text")
    (found,) = find(tmp_path)
    assert found.name == "caf\\xe9.txt"
    (split,) = plan_splits([found])
    (block,) = read_blocks(split.pieces[0], ReadOptions())
    assert block.ids.to_pylist() == ["caf\\xe9.txt"]


def test_hidden_files_and_markers_are_passed_over_unless_named(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", ".hidden", ".git/x", "_SUCCESS", "__pycache__/a.pyc", "_private.py")
    make(tmp_path, "part.crc/_SUCCESS", "_temporary/0/part")
    assert names(tmp_path) == ["_private.py", "a.txt"]
    assert names(tmp_path / "*") == ["_private.py", "a.txt"]
    assert names(tmp_path / "**") == ["_private.py", "a.txt"]
    assert names(tmp_path / ".hidden") == [".hidden"]
    assert names(tmp_path / ".h*") == [".hidden"]
    assert names(tmp_path / "_SUCCESS") == ["_SUCCESS"]
    assert names(tmp_path / ".git") == ["x"]


def test_links_to_files_are_read_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "data/a.txt", "elsewhere/b.txt")
    (tmp_path / "data/link.txt").symlink_to(tmp_path / "elsewhere/b.txt")
    (tmp_path / "data/loop").symlink_to(tmp_path / "data")
    assert names(tmp_path / "data") == ["a.txt", "link.txt"]
    (tmp_path / "entry").symlink_to(tmp_path / "data")
    assert names(tmp_path / "entry") == ["a.txt", "link.txt"]


@pytest.mark.parametrize("pattern", ["nothing.txt", "*.nothing", "no/folder/*.txt"])
def test_a_pattern_without_files_says_what_was_looked_for(tmp_path: Path, pattern: str) -> None:
    asked = str(tmp_path / pattern)
    make(tmp_path, "there.log")
    with pytest.raises(InputError, match="no file matches") as raised:
        find(tmp_path / "there.log", asked)
    assert repr(asked) in str(raised.value)


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
    assert names(tmp_path / "README.md") == names(tmp_path / "README.*") == ["README.md"]
    assert {file.format for file in find(tmp_path, format_="lines")} == {"lines"}
    assert len(find(tmp_path, format_="lines")) == 9


def test_a_corpus_is_not_passed_over_for_how_its_name_begins(tmp_path: Path) -> None:
    make(tmp_path, "README.jsonl", "license_plates.jsonl", "readme_texts.parquet", "LICENSES.json")
    assert len(names(tmp_path)) == 4
    assert passed_over(tmp_path) == []


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


def test_records_of_both_kinds_go_together_and_so_does_text_of_any_name(tmp_path: Path) -> None:
    make(tmp_path / "records", "a.jsonl", "b.parquet", "c.json.zst")
    make(tmp_path / "library", "a.py", "b/c.txt", "d", "e.md.gz")
    assert len(names(tmp_path / "records")) == 3
    assert len(names(tmp_path / "library")) == 4


def test_a_glob_matches_names_with_any_character(
    tmp_path: Path, memory: Callable[[Path], str]
) -> None:
    odd = ["a\\b.jsonl", "[a].jsonl", "new\nline.jsonl", "st*r.jsonl", "ünï.jsonl", "a.jsonl"]
    for name in odd:
        (tmp_path / name).write_text("{}")
    assert sorted(names(tmp_path / "*")) == sorted(names(tmp_path / "*.jsonl")) == sorted(odd)
    assert names(f"{memory(tmp_path)}/*") == names(tmp_path / "*")
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


def test_a_filesystem_that_nobody_knows_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no filesystem is known for nosuch://"):
        find("nosuch://bucket/*.txt")


@pytest.mark.parametrize(
    ("name", "format_", "compression"),
    [
        ("a.txt", "text", "none"),
        ("a", "text", "none"),
        ("a.py", "text", "none"),
        ("a.jsonl", "jsonl", "none"),
        ("a.ndjson.zst", "jsonl", "zst"),
        ("a.json.gz", "jsonl", "gz"),
        ("A.JSONL.GZ", "jsonl", "gz"),
        ("a.parquet", "parquet", "none"),
        ("a.pq", "parquet", "none"),
        ("a.txt.bz2", "text", "bz2"),
        ("a.xz", "text", "xz"),
        ("a.txt.bak", "text", "none"),
        ("a.1", "text", "none"),
        ("a.csv.txt", "text", "none"),
        ("package.json.html", "text", "none"),
        ("csv", "text", "none"),
        ("jsonl", "text", "none"),
    ],
)
def test_format_and_compression_follow_the_suffix(
    tmp_path: Path, name: str, format_: str, compression: str
) -> None:
    make(tmp_path, name)
    (file,) = find(tmp_path / name)
    assert (file.format, file.compression) == (format_, compression)


def test_a_format_that_is_asked_for_holds_for_every_file(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "b.jsonl", "c.parquet", "d.gz", "e.zip")
    files = find(tmp_path, format_="lines")
    assert {file.format for file in files} == {"lines"}
    assert [file.compression for file in files] == ["none", "none", "none", "gz", "none"]


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.jsonl.lz4", "a.parquet.gz"])
def test_archives_and_packed_parquet_are_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    make(tmp_path, name)
    with pytest.raises(InputError, match="unpack") as raised:
        find(tmp_path / name)
    assert name in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        *("a.csv", "A.TSV", "b/a.csv.gz", "a.avro", "a.jsonl.bak", "a.jsonl~", "a.parquet.old"),
        *("a.jsonl.gz.bak", "a.jsonl.bak.gz", "a.json.2026-11-21", "a.csv.1", "a.jsonl.orig.bak"),
    ],
)
def test_records_under_a_name_that_is_not_read_are_refused(tmp_path: Path, name: str) -> None:
    make(tmp_path, name)
    for pattern in (tmp_path / name, tmp_path):
        with pytest.raises(InputError, match=r"holds records .*say `format`") as raised:
            find(pattern)
        assert name in str(raised.value)
    (file,) = find(tmp_path / name, format_="text")
    assert file.format == "text"


def test_a_corpus_elsewhere_has_the_same_names(tmp_path: Path) -> None:
    for root in ("first", "second/deeper"):
        make(tmp_path / root, "x/1.txt", "y/2.txt")
    assert names(tmp_path / "first") == names(tmp_path / "second/deeper")


@pytest.fixture
def memory() -> Iterator[Callable[[Path], str]]:
    """Copies a folder to a store of fsspec; gives its URL."""
    store = fsspec.filesystem("memory")

    def copied(folder: Path) -> str:
        for path in folder.rglob("*"):
            if path.is_file():
                store.pipe_file(f"/bucket{path}", path.read_bytes())
        return f"memory://bucket{folder}"

    yield copied
    store.store.clear()
    store.pseudo_dirs[:] = [""]


def test_other_schemes_work_like_local_paths(tmp_path: Path, memory: Callable[[Path], str]) -> None:
    make(tmp_path, "x/1.txt", "x/y/2.txt", "x/.hidden", "x/_SUCCESS", "x/y/3.py", "x1.txt")
    root = memory(tmp_path)
    assert names(root + "/x") == names(root + "/x/") == ["1.txt", "y/2.txt", "y/3.py"]
    assert names(root + "/x/**/*.txt") == ["1.txt", "y/2.txt"]
    assert names(root + "/x/*") == ["1.txt"]
    assert names(root + "/x/_SUCCESS") == ["_SUCCESS"]
    assert names(root + "/x/1.txt", tmp_path / "x1.txt") == [
        str(tmp_path / "x1.txt"),
        root + "/x/1.txt",
    ]
    with pytest.raises(InputError, match="no file matches"):
        find(root + "/x/*.md")
    (file,) = find(root + "/x/y/3.py")
    (split,) = plan_splits([file])
    (block,) = read_blocks(split.pieces[0], ReadOptions())
    assert block.texts.to_pylist() == ["x/y/3.py"]


def test_the_output_of_a_job_is_no_input_unless_named(
    tmp_path: Path, memory: Callable[[Path], str]
) -> None:
    make(tmp_path, "corpus/1.jsonl", "corpus/out/counts/manifest.json", "corpus/else/x.json")
    for folder in ("", "/corpus/out", "/corpus/else"):
        program = "another" if folder == "/corpus/else" else "beam-bpe"
        plan = Path(f"{tmp_path}{folder}/.plan.json")
        plan.write_text(json.dumps({"program": program}))
    assert names(tmp_path) == ["1.jsonl", "else/x.json"]
    assert names(tmp_path / "**" / "*.json") == ["x.json"]
    assert names(memory(tmp_path)) == ["1.jsonl", "else/x.json"]
    assert names(tmp_path / "corpus" / "out") == ["manifest.json"]


def test_a_key_of_a_store_is_taken_as_it_is(tmp_path: Path, memory: Callable[[Path], str]) -> None:
    odd = ["a #1?x.txt", "b%20c d.txt", "é [x]*.txt", "plain.txt"]
    make(tmp_path, *(f"in/{name}" for name in odd))
    root = memory(tmp_path)
    assert names(f"{root}/in") == sorted(odd)
    for name in odd:
        (file,) = find(f"{root}/in/{name}")
        (block,) = read_blocks(plan_splits([file])[0].pieces[0], ReadOptions())
        assert block.texts.to_pylist() == [f"in/{name}"]
    with pytest.raises(ConfigError, match="names with //"):
        find(f"{root}//in/plain.txt")
