"""The package as one file: built from sources, put together again from an installation."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pipelines.submission import package
from tests.cli.process import environment

REPACK = """
import sys
sys.path.insert(0, sys.argv[1])
from pipelines.submission import package
print(package.source_tree(), package.wheel(print), sep="\\n")
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def wheel(cache: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        said: list[str] = []
        built = package.wheel(said.append)
        assert len(said) == 1
        assert package.wheel(said.append) == built
        assert len(said) == 1  # once is enough
    return built


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_wheel_holds_what_workers_need(wheel: Path) -> None:
    files = contents(wheel)
    assert wheel.name.startswith(f"beam_bpe-0.1.0-cp{sys.version_info[0]}{sys.version_info[1]}-")
    assert any(name.startswith("bpe/_native") and name.endswith(".so") for name in files)
    for name in ("pipelines/encode/transform.py", "bpe/presets/settings/words.yaml"):
        assert name in files
    root = package.source_tree()
    assert root is not None
    module = "pipelines/encode/transform.py"
    assert files[module] == (root / module).read_bytes()


def test_building_leaves_nothing_in_the_sources(wheel: Path, cache: Path) -> None:
    kept = list((cache / "beam-bpe" / "packages").iterdir())
    assert kept == [wheel.parent]
    assert list(wheel.parent.iterdir()) == [wheel]


def test_an_installed_package_is_put_together_again(
    wheel: Path, cache: Path, tmp_path: Path
) -> None:
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run(
        [sys.executable, "-m", *install, tmp_path / "site", wheel], check=True, timeout=300
    )
    done = subprocess.run(
        [sys.executable, "-c", REPACK, tmp_path / "site"],
        env={**environment(XDG_CACHE_HOME=str(cache)), "PYTHONPATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    tree, path = done.stdout.split()
    assert tree == "None"
    again = Path(path)
    assert again.name == wheel.name
    record = "beam_bpe-0.1.0.dist-info/RECORD"
    files, before = contents(again), contents(wheel)
    assert files.keys() == before.keys()
    assert {n: d for n, d in files.items() if n != record} == {
        n: d for n, d in before.items() if n != record
    }
    lines = {tuple(text.decode().splitlines()) for text in (files[record], before[record])}
    assert len({tuple(sorted(one)) for one in lines}) == 1


def test_sources_can_be_built_elsewhere(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    setup = package.sources(print)
    folder = setup.parent
    assert setup.name == "setup.py"
    assert (folder / "bpe" / "native" / "text" / "scanner.h").is_file()
    assert (folder / "configs" / "presets" / "words.yaml").is_file()
    assert not list(folder.rglob("*.so"))


def test_where_nothing_can_be_kept_the_command_says_so(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    said: list[str] = []
    setup = package.sources(said.append)
    assert setup.is_file()
    assert not setup.is_relative_to(cache)
    (line,) = said
    assert line.startswith(f"{tmp_path / 'file'}/beam-bpe/packages cannot be written (Not a dir")
    assert package.sources(said.append) == setup
    assert len(said) == 1  # once for a process


def test_a_cache_of_no_absolute_name_is_not_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(cache))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert package.sources(print).is_relative_to(cache / ".cache")
    assert list(tmp_path.iterdir()) == []
