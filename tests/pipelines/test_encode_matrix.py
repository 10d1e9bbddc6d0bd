"""Every format, every compression and every mode together: the same rows, proved and decoded."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Literal

import pytest

from pipelines.formats import FILE_FORMATS
from pipelines.settings import InputSettings
from tests import jobs
from tests.pipelines.corpora import MODES, decoded, encode, sentence
from tests.pipelines.corpus_files import COMPRESSIONS, pack, stored
from tests.shared_data import LONG, long_but

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.corpus.files import Compression
    from pipelines.formats import FileFormat

TEXTS = [sentence(i).replace("\n", " ") if i % 4 else "" for i in range(24)]
CASES: list[tuple[FileFormat, Compression]] = [
    (name, packed)
    for name, traits in FILE_FORMATS.items()
    for packed in (COMPRESSIONS if traits.can_be_compressed else ("none",))
]


def write(folder: Path, format_: FileFormat, packed: Compression) -> None:
    """The texts in two files; as ``text``, each has one of its own."""
    folder.mkdir()
    files = {f"{i:02}.txt": text.encode() for i, text in enumerate(TEXTS)}
    if format_ != "text":
        halves = {"a": TEXTS[:10], "b": TEXTS[10:]}
        files = {f"{n}.{format_}": stored(format_, half) for n, half in halves.items()}
    suffix = "" if packed == "none" else f".{packed}"
    for name, data in files.items():
        (folder / f"{name}{suffix}").write_bytes(pack(data, packed))


# A file of lines looks like any text: it is asked for.
@pytest.mark.parametrize("asked", long_but(["auto", "lines"], "auto"))
def test_formats_and_compressions_mix_in_one_corpus(
    model: Path, tmp_path: Path, asked: Literal["auto", "lines"]
) -> None:
    for format_, packed in CASES:
        if (format_ == "lines") == (asked == "lines"):
            write(tmp_path / f"{format_} {packed}", format_, packed)
    corpus = [str(path) for path in sorted(tmp_path.iterdir())]
    inputs = InputSettings(patterns=tuple(corpus), format=asked, split_size=1000)
    for name, settings in islice(MODES.items(), 0, None, 1 if LONG else 3):
        encode(inputs, model, tmp_path / name, encoding=settings)
        verified = jobs.verify(directory=str(tmp_path / name), inputs=inputs)
        assert verified.documents == len(corpus) * len(TEXTS)
        assert [text for _, text in decoded(tmp_path / name)] == len(corpus) * TEXTS
