"""Inputs with names: the fields of each, and totals by source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.encode.manifest import read_encoded
from pipelines.errors import ConfigError, InputError, OutputError, VerificationError
from pipelines.settings import InputSettings
from tests import jobs
from tests.cli.process import bpe
from tests.pipelines.corpora import count, encode, sentence, train, write_rows
from tests.pipelines.test_train_mix import MIX
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = {"text_field": ("web=body", "code=file.source", "text"), "id_field": ("web=url",)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sources that call the text otherwise; the files of two alternate."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(4):
        rows = [{"url": f"u{number}{i}", "id": 1, "body": sentence(i)} for i in range(9)]
        write_rows(folder / f"{number}-web.jsonl", rows)
        files = [{"source": sentence(100 + i)} for i in range(5)]
        pq.write_table(pa.table({"file": files}), folder / f"{number}-code.parquet")
    write_rows(folder / "notes.jsonl", [{"id": "n", "text": sentence(7)}])
    return folder


def named(folder: Path, *, split_size: int | None = None, **fields: object) -> InputSettings:
    patterns = (f"web={folder}/*-web.jsonl", f"code={folder}/*.parquet", f"{folder}/notes.jsonl")
    return InputSettings.of(patterns, split_size=split_size, **{**FIELDS, **fields})


@pytest.mark.parametrize("split_size", long_but([None, 300], 300))
def test_each_source_has_its_fields_and_its_totals(
    folder: Path, model: Path, tmp_path: Path, split_size: int | None
) -> None:
    inputs = named(folder, split_size=split_size)
    summary = encode(inputs, model, tmp_path / "ids")
    table = pq.read_table(tmp_path / "ids" / "data")
    codes = [f"{number}-code.parquet:{row}" for number in range(4) for row in range(5)]
    expected = [f"u{number}{i}" for number in range(4) for i in range(9)] + codes + ["n"]
    assert table["id"].to_pylist() == expected
    manifest = read_encoded(str(tmp_path / "ids"))
    sources = manifest.totals.sources
    assert {name: one.documents for name, one in sources.items()} == {"web": 36, "code": 20}
    tokens = table["num_tokens"].to_pylist()
    assert [one.tokens for one in sources.values()] == [sum(tokens[:36]), sum(tokens[36:56])]
    sizes = [
        sum(len(sentence(first + i).encode()) for i in range(n)) for first, n in ((0, 9), (100, 5))
    ]
    assert [one.text_bytes for one in sources.values()] == [4 * size for size in sizes]
    assert [one.source for one in manifest.inputs] == ["web"] * 4 + ["code"] * 4 + [""]
    assert {part.source for part in manifest.parts} == {"web", "code", ""}
    assert summary.documents == 57
    plain = InputSettings.of([str(folder)], split_size=split_size)
    for given in (inputs, plain):  # the manifest holds how they are read
        assert jobs.verify(directory=str(tmp_path / "ids"), inputs=given).compared


def test_fields_of_sources_are_those_of_counts_and_of_training(
    folder: Path, tmp_path: Path
) -> None:
    counted = count(named(folder), tmp_path / "counts")
    assert counted.documents == 57
    assert (tmp_path / "counts" / "data").is_dir()  # one set of counts, not one a source
    assert jobs.verify(directory=str(tmp_path / "counts"), inputs=named(folder)).documents == 57
    trained = train(tmp_path / "model", inputs=named(folder))
    assert trained.documents == 57
    mixed = InputSettings.of(named(folder).patterns[:2], **FIELDS)
    assert train(tmp_path / "mixed", inputs=mixed, mix=MIX).documents == 56


def test_verify_finds_another_source(folder: Path, model: Path, tmp_path: Path) -> None:
    encode(named(folder), model, tmp_path / "ids")
    swapped = tuple(
        pattern.replace("web=", "x=").replace("code=", "web=").replace("x=", "code=")
        for pattern in named(folder).patterns
    )
    with pytest.raises(VerificationError, match=r"given as of the source code, .* says web: give"):
        jobs.verify(directory=str(tmp_path / "ids"), inputs=InputSettings(patterns=swapped))


def test_another_source_or_field_is_another_job(folder: Path, model: Path, tmp_path: Path) -> None:
    encode(named(folder), model, tmp_path / "ids")
    again = encode(named(folder), model, tmp_path / "ids", resume=True)
    assert again.resumed_parts == again.parts
    other = named(folder, id_field=("web=url", "code=file.source"))
    with pytest.raises(OutputError, match="source_fields was"):
        encode(other, model, tmp_path / "ids", resume=True)
    renamed = InputSettings.of([f"a={folder}/*-web.jsonl"], text_field="body")
    encode(renamed, model, tmp_path / "renamed")
    renamed = InputSettings.of([f"b={folder}/*-web.jsonl"], text_field="body")
    with pytest.raises(OutputError, match="inputs"):
        encode(renamed, model, tmp_path / "renamed", resume=True)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no such source": ({"text_field": "wiki=body"}, "no `input` is named wiki: the sources are a"),
    "given twice": ({"id_field": ("a=x", "a=y")}, "`id_field` of a is given twice"),
    "two defaults": ({"text_field": ("x", "y")}, "`text_field` of all inputs is given twice"),
    "no field": ({"text_field": ("a=",)}, "`text_field` is empty"),
    "no pattern": ({"patterns": ("a=",)}, "`input` is empty"),
}


@pytest.mark.parametrize("how", WRONG)
def test_what_names_nothing_is_refused(how: str) -> None:
    arguments, message = WRONG[how]
    with pytest.raises(ConfigError, match=message):
        InputSettings(**{"patterns": ("a=x",), **arguments})


def test_a_field_may_have_any_name_where_no_input_has_one() -> None:
    assert InputSettings(patterns=("x",), text_field="a=b").text_fields() == {"": "a=b"}


def test_files_of_two_sources_are_refused(folder: Path, model: Path, tmp_path: Path) -> None:
    for other in ("b=", ""):
        inputs = InputSettings(patterns=(f"a={folder}/*.jsonl", f"{other}{folder}/notes.jsonl"))
        with pytest.raises(InputError, match=r"notes\.jsonl is of two sources, a and (b|one with)"):
            encode(inputs, model, tmp_path / "ids")


def test_the_command_line_and_files_name_sources(folder: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "lang=en").mkdir()
    (tmp_path / "lang=en" / "a.jsonl").write_text('{"text": "low"}')
    bpe("encode", "--input", "./lang=en", "--tokenizer", model, "--output", "one", cwd=tmp_path)
    said = bpe(
        *("encode", "--input", "lang=en", "--tokenizer", model, "--output", "two"),
        cwd=tmp_path,
        status=1,
    )
    assert "lang= names a source: for a path, write ./lang=en" in said.stderr
    config = [f"input: [web={folder}/*-web.jsonl]", "text_field: [web=body]", "id_field: url"]
    (tmp_path / "job.yaml").write_text("\n".join(config))
    bpe(*("encode", "--config", "job.yaml", "--tokenizer", model, "--output", "ids"), cwd=tmp_path)
    assert pq.read_table(tmp_path / "ids" / "data")["id"][0].as_py() == "u00"
