"""A corpus with everything wrong that can be wrong in one, and what is right in it.

Used on the local runner here, and on other runners by the tests of clusters.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.pipelines.corpora import sentence

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 50  # one record in so many is bad
# Eleven ways in which a line of JSON is no document, each with a piece of the reason that is given.
BAD_LINES: tuple[tuple[bytes, str], ...] = (
    (b'{"text": "caf\xe9"}', "malformed UTF-8"),
    (b'{"text": "half a li', "not one JSON value"),
    (b'{"text": null}', "is null"),
    (b'{"text": ["a", "list"]}', "not a string"),
    (b'{"body": "no such field"}', "no field 'text'"),
    (b'["text"]', "where an object was expected"),
    (rb'{"text": "lone \ud800 surrogate"}', "which is no character"),
    (b'{"text": "raw \x00 byte"}', "not one JSON value"),
    (b'{"text": "deep", "more": ' + b"[" * 300 + b"]" * 300 + b"}", "nest more than"),
    (b'{"text": "one"} {"text": "two"}', "not one JSON value"),
    (b'{"text": "one", "text": "two"}', "duplicate key 'text'"),
)
# Odd, and documents all the same.
ODD_LINES: tuple[tuple[bytes, str], ...] = (
    (rb'{"text": "one key", "Text": "another"}', "one key"),
    (b'{"text": "huge", "n": ' + b"9" * 5000 + b', "x": 1e99999}', "huge"),
    (rb'{"text": "escaped \u0000 byte"}', "escaped \0 byte"),
    (b'{"text": "", "nan": NaN}', ""),
)


@dataclass
class Poisoned:
    """The contents of a poisoned corpus.

    Attributes:
        folder: where it is.
        texts: of its documents, in the order of a job.
        bad: for each bad record the file, the place and a piece of the reason, in that order.
        lost: files to remove, and files to append to, once a job is planned.
        lost_bytes: what they held then.
    """

    folder: Path
    texts: list[str] = field(default_factory=list)
    bad: list[tuple[str, int, str]] = field(default_factory=list)
    lost: tuple[list[Path], list[Path]] = field(default_factory=lambda: ([], []))
    lost_bytes: int = 0

    @property
    def failures(self) -> int:
        return len(self.bad)

    def strike(self) -> None:
        """Take away and change the files that are to be lost between plan and reading."""
        gone, grown = self.lost
        for path in gone:
            path.unlink()
        for path in grown:
            with path.open("ab") as file:
                file.write(b"appended\n")

    def lose(self, path: Path, *, gone: bool) -> None:
        """Count on ``path`` to be lost."""
        self.lost[0 if gone else 1].append(path)
        self.lost_bytes += path.stat().st_size
        now = "is gone now" if gone else f"has {path.stat().st_size + 9} now"
        self.bad.append((path.name, 0, now))


def write_poisoned(folder: Path, *, documents: int, limit: int, long_line: int) -> Poisoned:
    """A corpus of JSON lines, Parquet, text and compressed files, all poisoned.

    Args:
        folder: to write to.
        documents: records of the largest file, of which one in `EVERY` is bad.
        limit: the size of a record that the job is to allow.
        long_line: bytes of a line beyond it.
    """
    folder.mkdir(parents=True)
    corpus = Poisoned(folder)
    _lines_of_json(corpus, documents)
    _rows(corpus)
    _texts(corpus)
    _cut_short(corpus)
    _bombs(corpus, limit)
    _long_line(corpus, long_line)
    for name in ("i.jsonl", "j.jsonl"):
        path = folder / name
        path.write_bytes(_document("never read") * 50)
        corpus.lose(path, gone=name == "i.jsonl")
    (folder / "k.txt").write_text("never read")
    corpus.lose(folder / "k.txt", gone=True)
    pq.write_table(pa.table({"text": ["never", "read"]}), folder / "l.parquet")
    corpus.lose(folder / "l.parquet", gone=True)
    return corpus


def write_poisoned_lines(folder: Path, *, documents: int, limit: int, long_line: int) -> Poisoned:
    """The same for files whose lines are documents; see `write_poisoned`."""
    folder.mkdir(parents=True)
    corpus = Poisoned(folder)
    place = 0
    with (folder / "a.txt").open("wb") as file:
        for number in range(documents):
            line = sentence(number, 5).replace("\n", " ").encode()
            if number % EVERY == EVERY // 2:
                line = b"\xff\xfe " + line
                corpus.bad.append(("a.txt", place, "malformed UTF-8"))
            else:
                corpus.texts.append(line.decode())
            place += file.write(line + b"\n")
    with (folder / "b.txt").open("wb") as file:
        file.write(b"before\n")
        _write_much(file, b"x", long_line)
        file.write(b"\nafter")
    corpus.bad.append(("b.txt", 7, "`max_record_size`"))
    corpus.texts += ["before", "after"]
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n") + gzip.compress(b"three\n")[:15])
    corpus.bad.append(("c.txt.gz", 8, "truncated"))
    corpus.texts += ["one", "two"]
    with zstandard.open(folder / "d.txt.zst", "wb") as packed:
        _write_much(packed, b"\0", 4 * limit)
        packed.write(b"\nbehind\n")
    corpus.bad.append(("d.txt.zst", 0, "`max_record_size`"))
    corpus.texts.append("behind")
    (folder / "e.txt").write_bytes(b"never read\n" * 9)
    corpus.lose(folder / "e.txt", gone=True)
    (folder / "f.txt").write_bytes(b"never read\n" * 9)
    corpus.lose(folder / "f.txt", gone=False)
    return corpus


def write_clean(folder: Path, *, documents: int, lines: bool) -> Poisoned:
    """As many documents, all of them good, in one file."""
    folder.mkdir(parents=True)
    corpus = Poisoned(folder)
    with (folder / ("a.txt" if lines else "a.jsonl")).open("wb") as file:
        for number in range(documents):
            text = sentence(number, 5).replace("\n", " ")
            corpus.texts.append(text)
            file.write(text.encode() + b"\n" if lines else _document(text))
    return corpus


def _document(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


def _write_much(file: IO[bytes] | gzip.GzipFile, text: bytes, size: int) -> None:
    """Write ``text`` again and again, in little memory: the job's own is measured."""
    for _ in range(-(-size >> 20)):
        file.write(text * ((1 << 20) // len(text)))


def _lines_of_json(corpus: Poisoned, documents: int) -> None:
    place = ways = odd = 0
    with (corpus.folder / "a.jsonl").open("wb") as file:
        for number in range(documents):
            if number % EVERY == EVERY // 2:
                line, reason = BAD_LINES[ways % len(BAD_LINES)]
                ways += 1
                corpus.bad.append(("a.jsonl", place, reason))
                line += b"\n"
            elif number % EVERY == EVERY // 3:
                line, text = ODD_LINES[odd % len(ODD_LINES)]
                odd += 1
                corpus.texts.append(text)
                line += b"\n"
            else:
                text = sentence(number, 5)
                corpus.texts.append(text)
                line = _document(text)
            place += file.write(line)


def _rows(corpus: Poisoned) -> None:
    raw: list[bytes | None] = [sentence(number, 5).encode() for number in range(1000)]
    raw[10], raw[700] = None, b"malformed \xff text"
    strings = pa.Array.from_buffers(pa.string(), len(raw), pa.array(raw, pa.binary()).buffers())
    table = pa.table({"text": strings})
    pq.write_table(table, corpus.folder / "b.parquet", row_group_size=300)
    corpus.bad += [("b.parquet", 10, "is null"), ("b.parquet", 700, "malformed UTF-8")]
    corpus.texts += [text.decode() for row, text in enumerate(raw) if text and row != 700]


def _texts(corpus: Poisoned) -> None:
    (corpus.folder / "c.txt").write_text("a whole file\n")
    (corpus.folder / "d.txt").write_bytes(b"a whole file, nearly \xff\n")
    corpus.texts.append("a whole file\n")
    corpus.bad.append(("d.txt", 0, "malformed UTF-8"))


def _cut_short(corpus: Poisoned) -> None:
    whole = b"".join(map(_document, ("one", "two")))
    path = corpus.folder / "e.jsonl.gz"
    path.write_bytes(gzip.compress(whole) + gzip.compress(_document("three"))[:15])
    corpus.texts += ["one", "two"]
    corpus.bad.append((path.name, len(whole), "truncated"))


def _bombs(corpus: Poisoned, limit: int) -> None:
    before, behind = _document("before the bomb"), _document("behind the bomb")
    for name, packed in (("f.jsonl.zst", zstandard.open), ("g.jsonl.gz", gzip.open)):
        with packed(corpus.folder / name, "wb") as file:
            file.write(before + b'{"text": "')
            _write_much(file, b" ", 8 * limit)
            file.write(b'"}\n' + behind)
        corpus.texts += ["before the bomb", "behind the bomb"]
        corpus.bad.append((name, len(before), "`max_record_size`"))
    with gzip.open(corpus.folder / "g.txt.gz", "wb") as file:
        _write_much(file, b"\0", 8 * limit)
    corpus.bad.append(("g.txt.gz", 0, "`max_record_size`"))


def _long_line(corpus: Poisoned, size: int) -> None:
    before = _document("before the long line")
    with (corpus.folder / "h.jsonl").open("wb") as file:
        file.write(before + b'{"text": "')
        _write_much(file, b"lo", size)
        file.write(b'"}\n' + _document("behind the long line"))
    corpus.texts += ["before the long line", "behind the long line"]
    corpus.bad.append(("h.jsonl", len(before), "`max_record_size`"))
