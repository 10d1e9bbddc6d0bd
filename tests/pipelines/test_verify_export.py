"""``bpe verify`` of an export: every file, every row, and what it was made of."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from bpe.files import CHECKSUM, with_checksum
from pipelines.errors import ConfigError, InputError, VerificationError
from pipelines.output.names import json_bytes
from tests import jobs
from tests.pipelines.corpora import FOUR, MODES, encode, small_tokenizer, write_corpus
from tests.pipelines.test_export import FORMATS, export

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.settings import InputSettings

EXPORTS: dict[str, dict[str, Any]] = {
    "bin": {"to": "bin"},
    "llm.c": {"to": "bin", "header": "llm.c"},
    "one bin": {"to": "bin", "header": "llm.c", "one_file": True},
    "megatron": {"to": "megatron"},
    "one megatron": {"to": "megatron", "one_file": True},
    "mds": {"to": "mds", "with_id": True, "shard_size": 700},
    "litdata": {"to": "litdata", "shard_size": 700},
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> InputSettings:
    return write_corpus(tmp_path_factory.mktemp("corpus")).inputs()


@pytest.fixture(scope="module")
def ids(tmp_path_factory: pytest.TempPathFactory, inputs: InputSettings) -> Path:
    folder = tmp_path_factory.mktemp("encoded")
    small_tokenizer(folder / "tokenizer.json")
    for mode in ("chunks with ends", "documents"):
        encode(inputs, folder / "tokenizer.json", folder / mode, encoding=MODES[mode])
    return folder / "chunks with ends"


@pytest.mark.parametrize("name", EXPORTS)
def test_what_was_exported_is_right(ids: Path, tmp_path: Path, name: str) -> None:
    made = export(ids, tmp_path / "out", **EXPORTS[name])
    summary = jobs.verify(directory=str(tmp_path / "out"))
    assert (summary.kind, summary.compared) == ("export", False)
    compared = jobs.verify(directory=str(tmp_path / "out"), encoded=str(ids), execution=FOUR)
    assert compared.compared
    for one in (summary, compared):
        assert (one.documents, one.tokens, one.parts) == (made.documents, made.tokens, made.parts)
        assert one.bytes == made.output_bytes


def change(path: Path, place: int = -1) -> None:
    """Change a byte of a file to another that a vocabulary may have."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def restate(folder: Path, edit: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """Let ``export.json`` say of every file what it is now, and more."""
    manifest = json.loads((folder / "export.json").read_bytes())
    del manifest[CHECKSUM]
    files = [*manifest["joined"], *(one for part in manifest["parts"] for one in part["files"])]
    for one in (*files, *manifest["index"]):
        data = (folder / one["file"]).read_bytes()
        one["bytes"], one["sha256"] = len(data), hashlib.sha256(data).hexdigest()
    edit(manifest)
    (folder / "export.json").write_bytes(json_bytes(with_checksum(manifest)))


@pytest.mark.parametrize("to", FORMATS)
def test_a_damaged_file_is_found(ids: Path, tmp_path: Path, to: str) -> None:
    out = tmp_path / "out"
    export(ids, out, to)
    path = min(out.glob("train-*"))
    change(path)
    with pytest.raises(VerificationError, match=f"{path.name}: its SHA-256 is not that"):
        jobs.verify(directory=str(out))
    path.unlink()
    with pytest.raises(VerificationError, match=f"{path.name} is missing"):
        jobs.verify(directory=str(out))


@pytest.mark.parametrize("name", ["bin", "one bin", "megatron", "one megatron", "litdata"])
def test_other_ids_are_found_where_the_encoded_corpus_is_given(
    ids: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    export(ids, out, **EXPORTS[name])
    change(max(out.glob("train*.bin")), -2)
    restate(out)
    if name == "litdata":  # whose index has no checksums
        jobs.verify(directory=str(out))
    with pytest.raises(VerificationError, match=r"row \d+ of .*parquet has other ids"):
        jobs.verify(directory=str(out), encoded=str(ids))


def test_an_id_beyond_the_vocabulary_is_found(ids: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(ids, out)
    path = min(out.glob("train-*"))
    data = bytearray(path.read_bytes())
    data[:2] = b"\xff\xff"
    path.write_bytes(data)
    restate(out)
    with pytest.raises(VerificationError, match="the id 65535 is none of the vocabulary's 320"):
        jobs.verify(directory=str(out))


def test_other_borders_are_found(ids: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(ids, out, "megatron")
    path = min(out.glob("train-*.idx"))
    change(path, 34)  # the length of the first sequence
    restate(out)
    with pytest.raises(VerificationError, match="do not lie one behind the other"):
        jobs.verify(directory=str(out))


def test_a_wrong_header_is_found(ids: Path, tmp_path: Path) -> None:
    for name in ("llm.c", "megatron", "litdata"):
        out = tmp_path / name
        export(ids, out, **EXPORTS[name])
        change(max(out.glob("train-00000-*")), 0)
        restate(out)
        with pytest.raises(VerificationError, match=r"does not list|is wrong|are wrong"):
            jobs.verify(directory=str(out))


def test_an_index_of_other_files_is_found(ids: Path, tmp_path: Path) -> None:
    export(ids, tmp_path, "litdata")
    index = json.loads((tmp_path / "index.json").read_bytes())
    index["chunks"].reverse()
    (tmp_path / "index.json").write_text(json.dumps(index))
    restate(tmp_path)
    with pytest.raises(VerificationError, match="the index does not list the files"):
        jobs.verify(directory=str(tmp_path))


def test_wrong_totals_are_found(ids: Path, tmp_path: Path) -> None:
    export(ids, tmp_path)
    restate(tmp_path, lambda manifest: manifest["totals"].update(tokens=1))
    with pytest.raises(VerificationError, match=r"the total of tokens in export.json is 1"):
        jobs.verify(directory=str(tmp_path))


def test_files_of_other_runs_are_found(ids: Path, tmp_path: Path) -> None:
    export(ids, tmp_path, one_file=True)
    (tmp_path / "train-00000-of-00007.bin").write_bytes(b"")
    with pytest.raises(VerificationError, match=r"is not named in export\.json"):
        jobs.verify(directory=str(tmp_path))


def test_another_corpus_is_no_source(ids: Path, tmp_path: Path, inputs: InputSettings) -> None:
    export(ids, tmp_path)
    with pytest.raises(VerificationError, match="is not what was exported"):
        jobs.verify(directory=str(tmp_path), encoded=str(ids.parent / "documents"))
    with pytest.raises(ConfigError, match="`input` goes with counts or an encoded corpus"):
        jobs.verify(directory=str(tmp_path), inputs=inputs)
    with pytest.raises(ConfigError, match="`encoded` goes with an export"):
        jobs.verify(directory=str(ids), encoded=str(ids))


def test_an_export_that_is_not_complete_is_refused(ids: Path, tmp_path: Path) -> None:
    export(ids, tmp_path)
    (tmp_path / "export.json").rename(tmp_path.parent / "export.json")
    with pytest.raises(InputError, match=r"no export\.json: no finished job left its output"):
        jobs.verify(directory=str(tmp_path))


def test_an_edited_manifest_is_refused(ids: Path, tmp_path: Path) -> None:
    export(ids, tmp_path)
    path = tmp_path / "export.json"
    path.write_text(path.read_text().replace('"rows": ', '"rows": 1'))
    with pytest.raises(InputError, match="checksum mismatch"):
        jobs.verify(directory=str(tmp_path))
    restate_with(path, lambda value: value["parts"][0].update(files=[_file("../a.bin")]))
    with pytest.raises(InputError, match=r"a file is '\.\./a\.bin'"):
        jobs.verify(directory=str(tmp_path))


def restate_with(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_bytes())
    del value[CHECKSUM]
    edit(value)
    path.write_bytes(json_bytes(with_checksum(value)))


def _file(name: str) -> dict[str, Any]:
    return {"file": name, "rows": 1, "tokens": 1, "bytes": 2, "sha256": ""}
