"""``bpe verify`` of an export: its files, and with its sources every row."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import InputError, JobError, VerificationError
from pipelines.output.names import manifest_bytes, read_manifest_object
from pipelines.stage.record import read_records, write_records
from tests.export.exports import FORMATS, Options, export_plainly, verify
from tests.pipelines.corpora import flip

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.export.conftest import Ids

OPTIONS = {
    "plain": Options(validation=0.2),
    "chunks": Options(max_tokens=9, shuffle=2),
    "packed": Options(pack=16, validation=0.3, shuffle=5, mix=("web=60%", "code=40%")),
    "fitted": Options(pack=16, packing="best-fit", token_budget=2500, mix=("web=1/2", "code=1/2")),
}


@pytest.fixture(scope="module")
def sources(ids: Ids) -> dict[str, Path]:
    return {"web": ids("web"), "code": ids("code")}


@pytest.fixture(scope="module")
def exported(
    sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """The export of some options to a format; nobody may change it."""
    folder = tmp_path_factory.mktemp("exported")

    @cache
    def made(name: str, to: Any) -> Path:
        export_plainly(sources, folder / f"{name}-{to}", replace(OPTIONS[name], to=to))
        return folder / f"{name}-{to}"

    return lambda name="plain", to="parquet": made(name, to)


@pytest.fixture
def output(exported: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of the plain export to Parquet, which a test may change."""
    return shutil.copytree(exported(), tmp_path / "out")


@pytest.mark.parametrize("to", FORMATS)
def test_damage_of_any_file_is_found(
    exported: Callable[..., Path], tmp_path: Path, to: str
) -> None:
    output = shutil.copytree(exported(to=to), tmp_path / "out")
    parts = sorted(output.rglob("*-of-*"))
    others = [path for path in output.rglob("[!.]*") if path.is_file() and path not in parts]
    for path in (parts[0], parts[-1], *others):
        data = path.read_bytes()
        flip(path)
        if path.name == "sources.parquet":  # compared by its rows: not every bit decides
            path.write_bytes(data[:-2])
        for _ in range(2):
            with pytest.raises((InputError, VerificationError), match=path.name):
                verify(output)
            path.unlink(missing_ok=True)
        path.write_bytes(data)


def restate(output: Path) -> None:
    """Let records and manifest say of every file what it is now: only its sources tell more."""

    def now(name: str) -> dict[str, Any]:
        data = (output / name).read_bytes()
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    manifest = output / "manifest.json"
    value = read_manifest_object(str(manifest))
    records = [
        replace(record, files=tuple(replace(file, **now(file.file)) for file in record.files))
        for record in read_records(str(output), value["records"]["sha256"])
    ]
    write_records(str(output), records)
    for file in (value["records"], *value["index"]):
        file.update(now(file["file"]))
    files = [file for record in records for file in record.files]
    for half in ("training", "validation"):
        own = [one.bytes for one in files if ("validation" in one.file) == (half != "training")]
        value[half]["bytes"] = sum(own)
    manifest.write_bytes(manifest_bytes(value))


def parts(output: Path, half: str = "train") -> list[Path]:
    return sorted((output / "data").glob(f"{half}-*"))


def rewrite(path: Path, edit: Callable[[list[dict[str, Any]]], object]) -> None:
    table = pq.read_table(path)
    rows = table.to_pylist()
    edit(rows)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


EDITS: dict[str, Callable[[Path], object]] = {
    "another half": lambda out: shutil.copy(parts(out, "validation")[0], parts(out)[0]),
    "a row dropped": lambda out: rewrite(parts(out)[1], lambda rows: rows.pop(1)),
    "a row twice": lambda out: rewrite(parts(out)[1], lambda rows: rows.insert(0, rows[0])),
    "another id": lambda out: rewrite(parts(out)[1], lambda rows: rows[-1]["input_ids"].sort()),
    "another column": lambda out: rewrite(parts(out)[1], lambda rows: rows[1].update(lang="x")),
    "an id more": lambda out: rewrite(parts(out)[1], lambda rows: rows[2]["input_ids"].append(1)),
}
NAMED = {"an id more": r"train-00001-of-.*row 2.*'[wc]\d+'"}


@pytest.mark.parametrize("edit", EDITS)
def test_forged_rows_are_found_where_the_sources_are_given(
    sources: dict[str, Path], output: Path, edit: str
) -> None:
    EDITS[edit](output)
    restate(output)
    with pytest.raises(VerificationError, match=NAMED.get(edit, r"(train|validation)-.*row \d+")):
        verify(output, sources)


@pytest.mark.parametrize("to", ["bin", "megatron", "litdata"])
def test_other_ids_are_found_in_every_format(
    sources: dict[str, Path], exported: Callable[..., Path], tmp_path: Path, to: str
) -> None:
    output = shutil.copytree(exported("packed", to), tmp_path / "out")
    path = sorted(output.glob("train-*.bin"))[1]
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    restate(output)
    with pytest.raises(VerificationError, match=rf"{path.name}|row \d+"):
        verify(output, sources)


def test_wrong_totals_are_found(sources: dict[str, Path], output: Path) -> None:
    manifest = output / "manifest.json"
    for count in ("documents", "rows", "tokens"):
        value = read_manifest_object(str(manifest))
        before, value["training"][count] = value["training"][count], 1
        manifest.write_bytes(manifest_bytes(value))
        for given in (None, sources):
            with pytest.raises(VerificationError, match=count):
                verify(output, given)
        value["training"][count] = before
        manifest.write_bytes(manifest_bytes(value))


def test_files_that_nobody_names_are_found(exported: Callable[..., Path], tmp_path: Path) -> None:
    for to in FORMATS:
        output = shutil.copytree(exported(to=to), tmp_path / to)
        part = next(path for path in output.rglob("train-00000*"))
        other = part.with_name(part.name.replace("00000-of-", "00099-of-"))
        other.write_bytes(part.read_bytes())
        with pytest.raises(VerificationError, match=other.name):
            verify(output)


def test_other_sources_are_refused(
    ids: Ids, sources: dict[str, Path], exported: Callable[..., Path]
) -> None:
    for other in (
        {"web": ids("web")},
        {"web": ids("web"), "code": ids("edges")},
        {"code": ids("web"), "web": ids("code")},
        {**sources, "edges": ids("edges")},
    ):
        with pytest.raises(JobError, match=r"code|edges|source"):
            verify(exported(), other)


def test_a_source_that_changed_is_named(
    sources: dict[str, Path], exported: Callable[..., Path], tmp_path: Path
) -> None:
    web = shutil.copytree(sources["web"], tmp_path / "web")
    path = sorted((web / "data").glob("*"))[2]
    flip(path)
    with pytest.raises((InputError, VerificationError), match=path.name):
        verify(exported(), {**sources, "web": web})
