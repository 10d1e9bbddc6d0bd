"""The command line of ``bpe export``: sources and their names, messages and what they say."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.process import bpe
from tests.cli.reports import section, sections, table
from tests.contrast import readable
from tests.export import oracle
from tests.export.exports import Options, check
from tests.pipelines.corpora import flip, tree
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from tests.export.conftest import Ids


@pytest.fixture
def folder(ids: Ids, tmp_path: Path) -> Path:
    for name, corpus in (("a/ids", "web"), ("b/ids", "code"), ("my ids!", "edges"), ("a=b", "web")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ids(corpus))
    return tmp_path


def run(folder: Path, *arguments: str, status: int = 0) -> str:
    output = () if "--output" in arguments else ("--output", "out")
    done = bpe("export", *arguments, *output, cwd=folder, status=status)
    return done.stderr if status else done.stdout


def manifest(folder: Path, output: str = "out") -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / output / "manifest.json").read_bytes())
    return value


def source_names(folder: Path, output: str = "out") -> list[str]:
    return [source["name"] for source in manifest(folder, output)["sources"]]


def test_a_source_is_called_as_it_is_named_or_by_its_place(folder: Path) -> None:
    """Bytes do not depend on the place of a source."""
    run(folder, "a/ids", "code=b/ids", "my ids!", "--to", "parquet", "--shuffle", "1")
    places = ("a/ids", "b/ids", "my ids!")
    names = ("source-0", "code", "source-2")
    sources = {name: folder / place for name, place in zip(names, places, strict=True)}
    assert source_names(folder) == list(names)
    check(sources, folder / "out", Options(shuffle=1), unit_tokens=1 << 24)
    run(folder, "./a=b", "--to", "bin", "--output", "other")
    assert source_names(folder, "other") == ["source-0"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("x=a/ids", "x=b/ids", "--to", "bin"), 2, "x"),
        (("x y=a/ids", "--to", "bin"), 1, "x y=a/ids: there is no such directory"),
        (("x=", "--to", "bin"), 2, "the source 'x=' has no directory"),
        (("a/ids", "code=b/ids", "--to", "bin", "--mix", "ids=70%", "--mix", "cod=30%"), 2, "cod"),
        (("none", "--to", "bin"), 1, "none: there is no such directory"),
        (("a", "--to", "bin"), 1, "a"),
        (("a/ids", "--to", "bin", "--validation", "half"), 2, "is not a share: write 0.5%"),
        (("a/ids", "--to", "bin", "--parquet-encoding", "plain"), 2, "needs --to parquet"),
        (("a/ids", "--to", "bin", "--output", "a"), 1, "is in its output directory"),
    ],
)
def test_what_is_wrong_is_named(
    folder: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    assert said in run(folder, *arguments, status=status)
    assert not (folder / "out").exists()


OPTIONS = Options(
    validation=0.2, pack=16, shuffle=1, mix=("web=1/2", "code=1/2"), token_budget=4000
)
MADE = (
    *("web=a/ids", "code=b/ids", "--to", "parquet", "--pack", "16", "--shuffle", "1"),
    *("--validation", "20%", "--mix", "web=1/2", "--mix", "code=1/2", "--token-budget", "4k"),
)


def test_summary_and_report_say_what_was_made(folder: Path) -> None:
    said = run(folder, *MADE)
    sources = {"web": folder / "a/ids", "code": folder / "b/ids"}
    check(sources, folder / "out", OPTIONS, unit_tokens=1 << 24)
    documents = oracle.halves(oracle.read(sources), OPTIONS)["train"]
    taken = {
        name: [len(one.ids) for one in documents if one.source_name == name] for name in sources
    }
    for name, lengths in taken.items():
        assert re.search(rf"{name}\b.*{sum(lengths):,}", said), said
    assert re.search(r"repeat|epoch|times", said), said
    halves = [manifest(folder)[half] for half in ("training", "validation")]
    check_summary(folder, halves)
    check_report(folder, halves, taken)


def check_summary(folder: Path, halves: list[dict[str, int]]) -> None:
    (folder / "out" / "manifest.json").unlink()
    summary = json.loads(run(folder, *MADE, "--json", "-q", "--resume"))
    for name in ("documents", "tokens", "rows", "files"):
        assert summary[name] == sum(half[name] for half in halves)
    for name in ("documents", "tokens"):
        assert summary[f"validation_{name}"] == halves[1][name]
    assert (summary["made_units"], summary["resumed_units"]) == (0, summary["files"])


def check_report(folder: Path, halves: list[dict[str, int]], taken: dict[str, list[int]]) -> None:
    bpe("report", "out", cwd=folder)
    page = folder / "out" / "report.html"
    found = section(page, "export")
    heads = ["of", "documents", "rows", "tokens", "pad tokens", "tokens in no row"]
    heads += ["documents in no row", "documents cut", "files", "bytes"]
    for half, shown in zip(halves, table(found, *heads), strict=True):
        assert shown[1:4] == [f"{half[name]:,}" for name in ("documents", "rows", "tokens")]
    heads = ["source", "share asked for", "share of the tokens", "tokens asked for", "tokens"]
    heads += ["of all its tokens", "documents", "of all its documents", "whole epochs"]
    for (name, lengths), shown in zip(taken.items(), table(found, *heads), strict=True):
        assert (shown[0], shown[1], shown[3]) == (name, "1/2", "2,000")
        assert (shown[4], shown[6]) == (f"{sum(lengths):,}", f"{len(lengths):,}")
    assert {"lengths", "manifest-export"} < set(sections(page.read_text("utf-8")))
    if LONG:
        assert "td.n" in readable(page)


def test_an_export_can_be_verified_and_is_no_ids(folder: Path) -> None:
    run(folder, "web=a/ids", "code=b/ids", "--to", "mds", "--pack", "16")
    before, made = tree(folder / "out"), manifest(folder)["training"]
    for inputs in ((), ("--input", "web=a/ids", "--input", "code=b/ids")):
        said = json.loads(bpe("verify", "out", *inputs, "--json", "-q", cwd=folder).stdout)
        assert (said["kind"], said["compared"], said["parts"]) == (
            *("export", bool(inputs), made["files"]),
        )
        assert [said[name] for name in ("documents", "tokens")] == [
            made[name] for name in ("documents", "tokens")
        ]
    assert tree(folder / "out") == before
    assert "holds an export" in run(folder, "out", "--to", "bin", "--output", "again", status=1)
    assert "holds an export" in bpe("decode", "out", cwd=folder, status=1).stderr
    path = next((folder / "out").glob("train-*.mds"))
    flip(path)
    assert path.name in bpe("verify", "out", cwd=folder, status=1).stderr
