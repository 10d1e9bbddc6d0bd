"""A corpus with everything wrong that can be wrong in one, and what is right in it.

Used on the local runner here, and on other runners by the tests of clusters.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from itertools import cycle
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.pipelines.corpora import sentence
from tests.pipelines.test_documents_jsonl import BAD_LINES

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 25  # one record in so many is bad


@dataclass
class Poisoned:
    """The contents of a poisoned corpus.

    Attributes:
        folder: where it is.
        texts: of its documents, in the order of a job.
        bad: for each bad record the file, the place and a piece of the reason, in that order.
        gone: files to remove once a job is planned.
        grown: files to append to then.
        lost_bytes: what both held before.
    """

    folder: Path
    texts: list[str] = field(default_factory=list)
    bad: list[tuple[str, int, str]] = field(default_factory=list)
    gone: list[Path] = field(default_factory=list)
    grown: list[Path] = field(default_factory=list)
    lost_bytes: int = 0

    def record(self, text: str) -> bytes:
        """A good record, whose text is counted on."""
        self.texts.append(text)
        return json.dumps({"text": text}).encode() + b"\n"

    def strike(self) -> None:
        """Take away and change the files that are to be lost between plan and reading."""
        for path in self.gone:
            path.unlink()
        for path in self.grown:
            with path.open("ab") as file:
                file.write(b"appended\n")

    def lose(self, path: Path, *, gone: bool = True) -> None:
        """Count on ``path`` to be lost."""
        (self.gone if gone else self.grown).append(path)
        self.lost_bytes += path.stat().st_size
        now = "is gone now" if gone else f"has {path.stat().st_size + 9} now"
        self.bad.append((path.name, 0, now))

    def add_records(self, documents: int) -> None:
        """One record in `EVERY` is bad."""
        bad = cycle(BAD_LINES)
        path = self.folder / "a.jsonl"
        with path.open("wb") as file:
            for number in range(documents):
                if number % EVERY == EVERY // 2:
                    line, reason = next(bad)
                    self.bad.append((path.name, file.tell(), reason))
                    file.write(line + b"\n")
                else:
                    file.write(self.record(sentence(number, 5)))

    def add_huge(self, path: Path, file: IO[bytes] | gzip.GzipFile, fill: bytes, size: int) -> None:
        """A record of more than ``size`` bytes between two good ones."""
        with file:
            before = self.record("before")
            file.write(before + b'{"text": "')
            _write_much(file, fill, size)
            file.write(b'"}\n' + self.record("behind"))
        self.bad.append((path.name, len(before), "`max_record_size`"))


def write_poisoned(folder: Path, *, documents: int, limit: int, long_line: int) -> Poisoned:
    """A corpus of records, texts and compressed files, all poisoned.

    Args:
        folder: to write to.
        documents: records of the largest file, of which one in `EVERY` is bad.
        limit: the size of a record that the job is to allow.
        long_line: bytes of a line beyond it.
    """
    folder.mkdir()
    corpus = Poisoned(folder)
    corpus.add_records(documents)
    _add_rows(corpus)
    _add_texts(corpus, limit)
    path = folder / "e.jsonl.gz"
    whole = corpus.record("one") + corpus.record("two")
    path.write_bytes(gzip.compress(whole) + gzip.compress(b'{"text": "three"}\n')[:15])
    corpus.bad.append((path.name, len(whole), "truncated"))
    for name, opened in (("f.jsonl.zst", zstandard.open), ("g.jsonl.gz", gzip.open)):
        corpus.add_huge(folder / name, opened(folder / name, "wb"), b" ", 8 * limit)
    path = folder / "h.jsonl"
    corpus.add_huge(path, path.open("wb"), b"lo", long_line)
    for name in ("i.jsonl", "j.jsonl"):
        (folder / name).write_bytes(b'{"text": "never read"}\n' * 50)
        corpus.lose(folder / name, gone=name == "i.jsonl")
    return corpus


def _write_much(file: IO[bytes] | gzip.GzipFile, fill: bytes, size: int) -> None:
    """Write ``fill`` again and again, in little memory: the job's own is measured."""
    for _ in range(-(-size >> 20)):
        file.write(fill * ((1 << 20) // len(fill)))


def _add_rows(corpus: Poisoned) -> None:
    raw: list[bytes | None] = [sentence(number, 5).encode() for number in range(1000)]
    raw[10], raw[700] = None, b"malformed \xff text"
    strings = pa.Array.from_buffers(pa.string(), len(raw), pa.array(raw, pa.binary()).buffers())
    table = pa.table({"text": strings})
    pq.write_table(table, corpus.folder / "b.parquet", row_group_size=300)
    corpus.bad += [("b.parquet", 10, "is null"), ("b.parquet", 700, "malformed UTF-8")]
    corpus.texts += [text.decode() for row, text in enumerate(raw) if text and row != 700]
    pq.write_table(pa.table({"text": ["never", "read"]}), corpus.folder / "l.parquet")
    corpus.lose(corpus.folder / "l.parquet")


def _add_texts(corpus: Poisoned, limit: int) -> None:
    """Files that are a document each."""
    (corpus.folder / "c.txt").write_text("a whole file\n")
    corpus.texts.append("a whole file\n")
    (corpus.folder / "d.txt").write_bytes(b"a whole file, nearly \xff\n")
    corpus.bad.append(("d.txt", 0, "malformed UTF-8"))
    with gzip.open(corpus.folder / "g.txt.gz", "wb") as file:
        _write_much(file, b"\0", 8 * limit)
    corpus.bad.append(("g.txt.gz", 0, "`max_record_size`"))
    (corpus.folder / "k.txt").write_text("never read")
    corpus.lose(corpus.folder / "k.txt")
