"""Files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import partial
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest

from bpe.files import final_name
from pipelines import storage
from pipelines.corpus.inputs import find_inputs
from pipelines.errors import ConfigError, InputError, OutputError
from pipelines.output.directory import locked
from pipelines.settings import InputSettings
from pipelines.tokenizer_files import load_tokenizer


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "file"
    with storage.replacing(str(path)) as file:
        file.write(b"one ")
        assert not path.exists()
        (hidden,) = path.parent.iterdir()
        assert final_name(hidden.name) == "file"
        file.write(memoryview(b"two"))
        assert file.tell() == 7
    assert path.read_bytes() == b"one two"
    assert file.written() == storage.Written(bytes=7, sha256=hashlib.sha256(b"one two").hexdigest())
    assert list(path.parent.iterdir()) == [path]
    assert storage.digest(str(path)) == file.written()


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    storage.write(str(path), b"old")
    with pytest.raises(TypeError), storage.replacing(str(path)) as file:
        file.write("new")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_of_the_block_are_not_taken_for_errors_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), storage.replacing(str(tmp_path / "file")):
        (tmp_path / "input").read_bytes()


def test_a_full_disk_is_an_output_error_that_names_the_file() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("wb", buffering=0) as raw:
        file = storage.HashingFile(raw, "out/part")
        with pytest.raises(OutputError, match="out/part: cannot write: No space left on device"):
            file.write(b"x")


def held(directory: str) -> None:
    with locked(directory):
        pass


def test_a_place_that_is_taken_is_an_output_error_in_one_line(tmp_path: Path) -> None:
    file, part = tmp_path / "file", tmp_path / "part"
    file.touch()
    part.mkdir()
    for act, place, message in (
        (held, file, "is a file: name a directory"),
        (held, file / "below", "cannot write: Not a directory"),
        (partial(storage.write, data=b""), file / "below", "cannot write.*"),
        (partial(storage.write, data=b"x"), part, "cannot write: Is a directory"),
    ):
        with pytest.raises(OutputError, match=f"^{re.escape(str(place))}:? {message}$"):
            act(str(place))
    assert sorted(tmp_path.iterdir()) == [file, part]


def test_a_directory_is_located_for_every_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert storage.located("out/") == str(tmp_path / "out")
    assert storage.located("./a/../out") == str(tmp_path / "out")
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    assert storage.located("link/../out") == str(tmp_path / "far" / "out")
    with pytest.raises(ConfigError, match="no filesystem is known for nosuch://"):
        storage.located("nosuch://bucket/out")


class Without(MetaPathFinder):
    """Makes a module look as if it were not installed."""

    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._module:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@pytest.mark.parametrize(
    ("scheme", "module", "remedy"),
    [
        ("ftp", "fsspec", "pip install fsspec"),
        ("hf", "huggingface_hub", "needs a package that is not installed here: .*huggingface_hub"),
        ("hdfs", "pydoop", "load lib(hdfs|jvm)"),
    ],
)
def test_a_filesystem_that_is_not_installed_says_what_it_needs(
    scheme: str, module: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.split(".")[0] == module or name == "fsspec.implementations.hf":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without(module), *sys.meta_path])
    for use in (
        storage.located,
        load_tokenizer,
        lambda path: find_inputs(InputSettings(patterns=(path,))),
    ):
        with pytest.raises(ConfigError, match=remedy):
            use(f"{scheme}://bucket{'-of-' + module}/name.json")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: cannot read"):
        storage.open_binary(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "name", ["file", ".file.tmp", ".file.0123.tmp", "file." + "0" * 32 + ".tmp"]
)
def test_other_names_are_not_temporary(name: str) -> None:
    assert final_name(name) == name


def test_a_name_need_not_be_text(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    written = storage.write(path, b"abc")
    assert storage.read(path) == b"abc"
    assert storage.digest(path) == written


@pytest.mark.parametrize("size", [0, 5, 20 << 20])
def test_what_is_read_of_a_file_is_what_was_hashed(tmp_path: Path, size: int) -> None:
    path, data = tmp_path / "file", bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    path.write_bytes(data)
    with storage.read_once(str(path)) as (file, found):
        path.write_bytes(b"y" * size)  # the same file, written over
        assert found == storage.Written(bytes=size, sha256=hashlib.sha256(data).hexdigest())
        file.seek(size // 2)
        assert file.read() == data[size // 2 :]
    with pytest.raises(InputError, match="file-: cannot read"), storage.read_once(f"{path}-"):
        pass
