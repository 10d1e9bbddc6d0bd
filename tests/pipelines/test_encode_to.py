"""``bpe encode --to``: what encoding and exporting make one after the other, by one command."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import ConfigError, InputError, OutputError, VerificationError
from pipelines.report import report
from pipelines.settings import (
    EncodeSettings,
    Execution,
    ExportSettings,
    InputSettings,
    OutputSettings,
)
from tests import jobs
from tests.pipelines.corpora import (
    END,
    FOUR,
    ONE,
    TWO,
    Corpus,
    encode,
    sentence,
    tree,
    write_jsonl,
)
from tests.pipelines.object_store import ObjectStore
from tests.pipelines.test_export import export

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipelines.summaries import EncodeSummary, ExportSummary

HELD_OUT = EncodeSettings(validation=0.3, shuffle=5, append_token=END)
ENDS = EncodeSettings(append_token=END)
BIN = ExportSettings(to="bin")


def encode_to(
    inputs: InputSettings,
    model: Path | str,
    out: Path | str,
    settings: ExportSettings | None = BIN,
    *,
    encoding: EncodeSettings = HELD_OUT,
    execution: Execution = ONE,
    overwrite: bool = False,
    resume: bool = False,
) -> dict[str, EncodeSummary | ExportSummary]:
    exported = OutputSettings(directory=str(out), overwrite=overwrite, resume=resume)
    return jobs.encode_and_export(
        inputs=inputs,
        tokenizer=str(model),
        encoded=exported if settings is None else replace(exported, directory=f"{out}/encoded"),
        encoding=encoding,
        exported=exported,
        settings=settings,
        execution=execution,
    )


def files(folder: Path) -> dict[str, bytes]:
    """All but plans, which hold the id of a run."""
    return {name: data for name, data in tree(folder).items() if not name.endswith(".plan.json")}


@pytest.mark.parametrize("to", ["bin", "mds"])
def test_both_jobs_make_what_each_makes_alone(
    corpus: Corpus, model: Path, tmp_path: Path, to: str
) -> None:
    out = tmp_path / "out"
    made = encode_to(corpus.inputs(), model, out, ExportSettings(to=to), execution=FOUR)  # type: ignore[arg-type]
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=HELD_OUT)
    export(tmp_path / "ids", tmp_path / "train", to)
    export(tmp_path / "ids", tmp_path / "held out", to, validation=True)
    alone = {
        **{f"encoded/{name}": data for name, data in files(tmp_path / "ids").items()},
        **files(tmp_path / "train"),
        **{f"validation/{name}": data for name, data in files(tmp_path / "held out").items()},
    }
    assert files(out) == alone
    assert list(made) == ["encode", "export", "validation"]
    assert made["export"].documents + made["validation"].documents == len(corpus.documents)
    kinds = [(output.folder, output.kind) for output in jobs.outputs(directory=str(out))]
    assert kinds == [("encoded", "encoded"), ("", "export"), ("validation", "export")]
    for folder in (out, out / "validation"):
        assert jobs.verify(directory=str(folder), encoded=str(out / "encoded")).compared


def test_what_was_not_exported_yet_is_not_complete(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    encode_to(corpus.inputs(), model, tmp_path / "whole")
    jobs.encode(  # as far as a command comes that is killed between the two jobs
        inputs=corpus.inputs(),
        tokenizer=str(model),
        output=OutputSettings(directory=str(out / "encoded")),
        encoding=HELD_OUT,
        execution=ONE,
        then="export",
    )
    with pytest.raises(InputError, match=r"out: no export\.json: no finished job left its output"):
        jobs.outputs(directory=str(out))
    with pytest.raises(OutputError, match="of bpe encode --to, which is not finished: repeat its"):
        encode_to(corpus.inputs(), model, out)
    export(out / "encoded", out, resume=True)
    with pytest.raises(InputError, match=r"validation: no export\.json: no finished job"):
        jobs.outputs(directory=str(out))
    made = encode_to(corpus.inputs(), model, out, resume=True, execution=TWO)
    assert made["encode"].resumed_parts == made["encode"].parts
    assert made["export"].resumed_parts == made["export"].parts
    assert made["validation"].resumed_parts == 0
    assert files(out) == files(tmp_path / "whole")
    with pytest.raises(OutputError, match="of bpe encode --to, which is complete: replace it"):
        encode_to(corpus.inputs(), model, out)


def test_nothing_is_encoded_for_an_export_that_cannot_be_made(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    packed = EncodeSettings(pack=16)
    with pytest.raises(ConfigError, match=r"`with_id`: the rows of .* are packed"):
        encode_to(
            *(corpus.inputs(), model, tmp_path / "out", ExportSettings(to="mds", with_id=True)),
            encoding=packed,
        )
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"out holds 'notes\.txt', which no job has left there"):
        encode_to(corpus.inputs(), model, tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "validation").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="validation is a link, which may lead out of"):
        encode_to(corpus.inputs(), model, tmp_path / "linked")
    assert [one.name for one in tmp_path.glob("*/*")] == ["notes.txt", "validation"]


def test_another_format_is_another_job(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    encode_to(corpus.inputs(), model, out)
    before = files(out)
    with pytest.raises(OutputError, match='begun as another job: settings to was "bin", is "mds"'):
        encode_to(corpus.inputs(), model, out, ExportSettings(to="mds"), resume=True)
    assert files(out) == before
    one_file = replace(BIN, one_file=True)
    encode_to(corpus.inputs(), model, out, one_file, encoding=ENDS, overwrite=True)
    encode_to(corpus.inputs(), model, tmp_path / "new", one_file, encoding=ENDS)
    assert files(out) == files(tmp_path / "new")
    assert not (out / "validation").exists()
    encode(corpus.inputs(), model, tmp_path / "plain")
    encode_to(corpus.inputs(), model, tmp_path / "plain", one_file, encoding=ENDS, overwrite=True)
    assert files(tmp_path / "plain") == files(out)


def test_an_export_follows_an_input_that_changed(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(60)])
    out = tmp_path / "out"
    encode_to(corpus.inputs(), model, out)
    path = corpus.folder / "docs.jsonl"
    path.write_text(path.read_text("utf-8").replace("quick", "QUICK"), "utf-8")
    jobs.encode(
        inputs=corpus.inputs(),
        tokenizer=str(model),
        output=OutputSettings(directory=str(out / "encoded"), resume=True),
        encoding=HELD_OUT,
        execution=ONE,
    )
    with pytest.raises(VerificationError, match="is not what was exported: its manifest is anoth"):
        jobs.verify(directory=str(out), encoded=str(out / "encoded"))
    encode_to(corpus.inputs(), model, out, resume=True)
    encode_to(corpus.inputs(), model, tmp_path / "new")
    assert files(out) == files(tmp_path / "new")


def broken(path: Path, *, by: str = "[") -> None:
    """Change the first byte: the record is not JSON, or is again, and the file has its size."""
    path.write_text(by + path.read_text("utf-8")[1:], "utf-8")


@pytest.fixture
def other(tmp_path: Path) -> Corpus:
    """A corpus of one file."""
    return write_jsonl(tmp_path / "other" / "docs.jsonl", [sentence(i) for i in range(60)])


def test_only_what_it_left_beside_an_export_is_removed(
    other: Corpus, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    encode(other.inputs(), model, out / "validation")
    before = files(out)
    for encoding in (ENDS, HELD_OUT):
        with pytest.raises(OutputError, match=r"validation holds .*, which no earlier run of this"):
            encode_to(other.inputs(), model, out, encoding=encoding, overwrite=True)
    with pytest.raises(OutputError, match=r"validation holds .*, which no earlier run of this"):
        encode_to(other.inputs(), model, out, encoding=ENDS)
    assert files(out) == before
    (tmp_path / "empty" / "validation").mkdir(parents=True)
    encode_to(other.inputs(), model, tmp_path / "empty", encoding=ENDS)


def test_an_export_of_another_corpus_is_not_resumed(
    corpus: Corpus, other: Corpus, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    encode_to(other.inputs(), model, out)
    complete = files(out)
    shutil.rmtree(out / "encoded")
    before = files(out)
    with pytest.raises(OutputError, match="out: cannot resume: it was begun as another job: it is"):
        encode_to(corpus.inputs(), model, out, resume=True)
    assert files(out) == before
    made = encode_to(other.inputs(), model, out, resume=True)
    assert made["export"].resumed_parts == made["export"].parts
    assert files(out) == complete


def test_rows_alone_replace_rows_and_exports(
    corpus: Corpus, other: Corpus, model: Path, tmp_path: Path
) -> None:
    encode_to(other.inputs(), model, tmp_path / "out")
    encode_to(corpus.inputs(), model, tmp_path / "out", None, overwrite=True)
    encode(corpus.inputs(), model, tmp_path / "new", encoding=HELD_OUT)
    assert files(tmp_path / "out") == files(tmp_path / "new")


def test_an_overwrite_that_failed_leaves_no_export_and_can_be_finished(
    corpus: Corpus, other: Corpus, model: Path, tmp_path: Path
) -> None:
    mds, out = ExportSettings(to="mds"), tmp_path / "out"
    encode_to(corpus.inputs(), model, out)
    before = files(out)
    nowhere = InputSettings(patterns=(str(tmp_path / "nowhere" / "*"),))
    with pytest.raises(InputError, match="no file matches"):
        encode_to(nowhere, model, out, overwrite=True)
    assert files(out) == before
    broken(other.folder / "docs.jsonl")
    with pytest.raises(InputError, match="not one JSON value"):
        encode_to(other.inputs(), model, out, mds, overwrite=True)
    assert [one.name for one in out.iterdir()] == ["encoded"]
    broken(other.folder / "docs.jsonl", by="{")
    encode_to(other.inputs(), model, out, mds, resume=True)
    encode_to(other.inputs(), model, tmp_path / "new", mds)
    assert files(out) == files(tmp_path / "new")


def test_its_rows_are_found_beside_it(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    encode_to(corpus.inputs(), model, tmp_path / "out")
    with pytest.raises(InputError, match=r"holds an export .*: name .*out/encoded, which it was"):
        report(str(tmp_path / "out"), output=str(tmp_path / "r.html"))


@pytest.fixture
def stored(model: Path) -> Iterator[str]:
    texts = [json.dumps({"id": f"d{i}", "text": sentence(i)}) for i in range(60)]
    ObjectStore.objects["store://bucket/in/docs.jsonl"] = "\n".join(texts).encode()
    ObjectStore.objects["store://bucket/tokenizer.json"] = model.read_bytes()
    yield "store://bucket"
    ObjectStore.objects.clear()


def test_in_a_store_it_is_the_same(stored: str, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "docs.jsonl").write_bytes(ObjectStore.objects[f"{stored}/in/docs.jsonl"])
    local = InputSettings(patterns=(str(tmp_path / "in"),), split_size=700)
    encode_to(local, model, tmp_path / "out")
    inputs = replace(local, patterns=(f"{stored}/in",))
    encode_to(inputs, f"{stored}/tokenizer.json", f"{stored}/out", execution=TWO)
    again = encode_to(inputs, f"{stored}/tokenizer.json", f"{stored}/out", resume=True)
    assert all(one.resumed_parts == one.parts for one in again.values())
    found = ObjectStore.tree(f"{stored}/out")
    rows = {name: data for name, data in files(tmp_path / "out").items() if "train-" in name}
    assert rows
    assert {name: found[name] for name in rows} == rows
    assert len(jobs.outputs(directory=f"{stored}/out")) == 3
    encode_to(inputs, f"{stored}/tokenizer.json", f"{stored}/out", None, overwrite=True)
    left = ObjectStore.tree(f"{stored}/out")
    assert {name.rpartition("/")[0] for name in left} == {"", "data"}
