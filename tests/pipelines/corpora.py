"""Small corpora and jobs over them, for the tests of the pipelines."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import bpe
from pipelines.count.job import CountRequest
from pipelines.encode.job import EncodeRequest
from pipelines.option import declared
from pipelines.output.names import (
    PLAN,
    SPLITS,
    TIMINGS,
    json_bytes,
    manifest_bytes,
    read_manifest_object,
)
from pipelines.planned import planned_splits
from pipelines.progress import SlotWriter
from pipelines.settings import (
    CountSettings,
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from pipelines.stage.record import Record, StoredFile, read_records, write_records
from pipelines.stage.stage import make_unit
from tests import jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pipelines.corpus.splits import Split
    from pipelines.planned import CorpusRequest
    from pipelines.stage.stage import Stage
    from pipelines.summaries import CountSummary, EncodeSummary, TrainSummary

END = "<|end|>"
MODES: dict[str, EncodeSettings] = {  # one at least for each way in which rows can differ
    "documents": EncodeSettings(),
    "ends": EncodeSettings(prepend_token=END, append_token=END, id_type="uint32"),
    "dropout": EncodeSettings(dropout=0.3, dropout_seed=5, append_token=END),
    "special, plain": EncodeSettings(allow_special=("all",), parquet_encoding="plain"),
}

ONE = Execution(workers=1)
TWO = Execution(workers=2)
FOUR = Execution(workers=4)
SPLIT = 700  # bytes: several splits of even the smallest corpus

WORDS = (
    *("the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog,", "naïve", "café"),
    *("—", "東京", "🙂", "don't", "stop\n"),
)


@dataclass(frozen=True)
class Corpus:
    """A folder, and the documents in it as (id, text), in the order of a job."""

    folder: Path
    documents: list[tuple[str, str]]

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.documents]

    def inputs(self, **reading: Any) -> InputSettings:
        return InputSettings(patterns=self.patterns, **{"split_size": SPLIT, **reading})

    @property
    def patterns(self) -> tuple[str, ...]:
        return patterns(self.folder)


KINDS = ("**/*.txt*", "**/*.jsonl*", "**/*.parquet")


def patterns(folder: Path) -> tuple[str, ...]:
    """One for each kind of file in a folder: text and records in one folder are refused."""
    return tuple(f"{folder}/{kind}" for kind in KINDS if any(folder.glob(kind)))


def begun(request: CorpusRequest) -> list[Split]:
    """The splits of a job that the first step has planned and prepared."""
    assert request.begin()
    return planned_splits(request.directory, request.run)


def make_units(stage: Stage, number: int | None = None) -> list[Record]:
    """Make the first units of a stage, or all."""
    nobody = SlotWriter(None, 0)
    units = list(stage.units())[:number]
    return [make_unit(stage, unit, slot=nobody, stopped=lambda: False)[0] for unit in units]


def encoded_manifest(ids: Path) -> dict[str, Any]:
    """The manifest of an encoded corpus, with its parts and dead letters."""
    value = read_manifest_object(str(ids / "manifest.json"))
    if "records" not in value:
        return value
    made = list(read_records(str(ids), value["records"]["sha256"]))
    letters = (one.totals["dead_letters"] for one in made)
    dead = [one for one in letters if one is not None]
    parts = [{**vars(one.files[0]), **one.totals} for one in made]
    return {**value, "dead_letters": dead, "parts": parts}


def edit_manifest(ids: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest of an encoded corpus with its records, or of counts; checksums agree."""
    manifest = encoded_manifest(ids)
    edit(manifest)
    if not {"records", "parts"} <= manifest.keys():
        (ids / "manifest.json").write_bytes(manifest_bytes(manifest))
        return
    parts, dead = manifest.pop("parts"), manifest.pop("dead_letters")
    letters = {int(one["file"].split("-")[2]): one for one in dead}
    records = [
        Record(
            unit=f"unit-{number}",
            fingerprint=part["fingerprint"],
            files=(StoredFile(**{name: part[name] for name in ("file", "bytes", "sha256")}),),
            totals={**part, "dead_letters": letters.get(number)},
        )
        for number, part in enumerate(parts)
    ]
    written = write_records(str(ids), records)
    manifest["records"].update(bytes=written.bytes, sha256=written.sha256)
    (ids / "manifest.json").write_bytes(manifest_bytes(manifest))


def decoded(directory: Path | str) -> list[tuple[str, str]]:
    """The documents of an encoded corpus, as (id, text)."""
    stream = io.BytesIO()
    jobs.decode(directory=str(directory), stream=stream)
    lines = [json.loads(line) for line in stream.getvalue().split(b"\n")[:-1]]
    return [(line["id"], line["text"]) for line in lines]


def sentence(number: int, words: int = 12) -> str:
    return " ".join(WORDS[(number * 7 + i * i) % len(WORDS)] for i in range(words))


def write_corpus(folder: Path) -> Corpus:
    """Every format; empty documents, duplicate ids, an empty file, a name that is not ASCII."""
    documents: list[tuple[str, str]] = []
    (folder / "b").mkdir(parents=True)

    text = "A whole file.\r\nIts last line has no end"
    (folder / "a ünï.txt").write_bytes(text.encode())
    documents.append(("a ünï.txt", text))

    rows = [
        ("same" if i % 9 == 0 else f"j{i}", "" if i % 5 == 0 else sentence(i)) for i in range(60)
    ]
    lines = [
        json.dumps({"id": id_, "text": text}, ensure_ascii=i % 2 == 0)
        for i, (id_, text) in enumerate(rows)
    ]
    (folder / "b" / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8", newline="")
    documents += rows

    (folder / "b" / "empty.jsonl").touch()

    rows = [(f"z{i}", sentence(i + 100, 30)) for i in range(20)]
    packed = "".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in rows).encode()
    half = len(packed) // 2  # two members
    (folder / "b" / "more.jsonl.gz").write_bytes(
        gzip.compress(packed[:half], mtime=0) + gzip.compress(packed[half:], mtime=0)
    )
    documents += rows

    rows = [(f"p{i}", sentence(i + 200)) for i in range(50)]
    table = pa.table({"id": [id_ for id_, _ in rows], "text": [text for _, text in rows]})
    pq.write_table(table, folder / "c.parquet", row_group_size=10, compression="none")
    documents += rows
    return Corpus(folder, documents)


def write_jsonl(path: Path, texts: list[str]) -> Corpus:
    """One file of documents with ids d0, d1, and so on."""
    rows = [(f"d{i}", text) for i, text in enumerate(texts)]
    write_rows(path, ({"id": id_, "text": text} for id_, text in rows))
    return Corpus(path.parent, rows)


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """One file of lines of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def small_tokenizer(path: Path) -> bpe.Tokenizer:
    """A tokenizer over the words of these corpora, saved at ``path``."""
    counts = bpe.count_pretokens([sentence(i, 40) for i in range(50)], special_tokens=(END,))
    tokenizer = bpe.train(counts, vocab_size=320)
    tokenizer.save(path)
    return tokenizer


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder`` but times and splits, hidden ones too, by its path in it."""
    return {
        str(path.relative_to(folder)): without_times(path.name, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (TIMINGS, SPLITS)
    }


def without_times(name: str, data: bytes) -> bytes:
    """A file of an output directory; a plan without the id of its run."""
    if name.rpartition("/")[2] != PLAN or b'"run"' not in data:
        return data
    plan = json.loads(data)
    del plan["run"]
    return json_bytes(plan)


def _asked(output: Path | str, more: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a job: the choices about its output are its own here, and one worker does it."""
    choice = {name: more.pop(name) for name in ("overwrite", "resume") if name in more}
    return {
        "output": OutputSettings(directory=str(output), **choice),
        "execution": ONE,
        **more,
    }


def count(inputs: InputSettings, output: Path | str, **more: Any) -> CountSummary:
    settings = {name: more.pop(name) for name in declared(CountSettings).keys() & more}
    asked = {"pretokens": PretokenSettings(), **_asked(output, more)}
    return jobs.count(inputs=inputs, settings=CountSettings(**settings), **asked)


def train(output: Path | str, **more: Any) -> TrainSummary:
    asked = {"training": TrainSettings(vocab_size=300), **_asked(output, more)}
    return jobs.train(**asked | {"pretokens": more.get("pretokens") or PretokenSettings()})


def encode(
    inputs: InputSettings, tokenizer: Path | str, output: Path | str, **more: Any
) -> EncodeSummary:
    return jobs.encode(inputs=inputs, tokenizer=str(tokenizer), **_asked(output, more))


def encode_request(
    inputs: InputSettings, tokenizer: Path | str, output: Path | str, *, resume: bool = False
) -> EncodeRequest:
    """The job of `encode`, for tests of its steps."""
    return EncodeRequest.of(
        inputs=inputs,
        tokenizer=str(tokenizer),
        output=OutputSettings(directory=str(output), resume=resume),
        encoding=EncodeSettings(),
    ).started()


def count_request(inputs: InputSettings, output: Path | str) -> CountRequest:
    """The job of `count`, likewise."""
    return CountRequest.of(
        inputs=inputs,
        pretokens=PretokenSettings(),
        output=OutputSettings(directory=str(output)),
        settings=CountSettings(),
    ).started()


def flip(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def dead_letters(directory: Path) -> list[dict[str, Any]]:
    """The records that a job has set aside below a directory, in the order of its parts."""
    files = sorted(directory.rglob("dead-letters/*"))
    return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]
