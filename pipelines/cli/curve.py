"""``bpe show --curve``: what smaller vocabularies would do, from one training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipelines.cli.report import show_json
from pipelines.errors import InputError

if TYPE_CHECKING:
    from bpe.sizes import VocabularySize
    from bpe.training import Training

_STEPS = (1, 2, 5)  # of each power of ten
_HEADS = ("vocabulary", "tokens", "tokens per word", "bytes per token")


def training_file(tokenizer: str) -> Path:
    """Where the training of a tokenizer stands, if anywhere: beside it."""
    path = Path(tokenizer)
    return (path if path.is_dir() else path.parent) / "training.json"


def show_curve(tokenizer: str, *, sizes: tuple[int, ...], as_json: bool) -> None:
    """Print what vocabularies of these sizes do to the corpus they were trained on.

    Args:
        tokenizer: the file beside which ``training.json`` is.
        sizes: vocabulary sizes; none for all of them as JSON, and some of them as text.
        as_json: print a list of objects.

    Raises:
        InputError: there is no ``training.json``.
        TokenizerFileError: it is damaged.
    """
    from bpe.sizes import vocabulary_sizes
    from bpe.training import Training

    file = training_file(tokenizer)
    if not file.is_file():
        raise InputError(f"{file} is missing: the curve is in it; bpe train writes it")
    training = Training.load(file)
    rows = vocabulary_sizes(training, sizes or None)
    if as_json:
        show_json([row._asdict() for row in rows])
        return
    cells = [_HEADS, *map(_cells, rows if sizes else _some(rows))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.rjust, line, widths)) for line in cells]
    click.echo("\n".join([*lines, *_notes(training, sizes, rows)]))


def _some(rows: list[VocabularySize]) -> list[VocabularySize]:
    """The first, the last, and 1, 2 and 5 times each power of ten between them."""
    places = {0, len(rows) - 1}
    power = 1
    while power <= rows[-1].vocab_size:
        places |= {step * power - rows[0].vocab_size for step in _STEPS}
        power *= 10
    return [rows[place] for place in sorted(places) if 0 <= place < len(rows)]


def _cells(row: VocabularySize) -> tuple[str, ...]:
    return (
        f"{row.vocab_size:,}",
        f"{row.tokens:,}",
        f"{row.tokens_per_word:.3f}",
        f"{row.bytes_per_token:.3f}",
    )


def _notes(training: Training, sizes: tuple[int, ...], rows: list[VocabularySize]) -> list[str]:
    """What became of sizes that no training gives."""
    notes = []
    for size, row in zip(sizes, rows, strict=False):
        if size < row.vocab_size:
            notes.append(f"{size:,}: special tokens and alphabet alone are {row.vocab_size:,}")
        elif size > row.vocab_size:
            notes.append(f"{size:,}: training ended at {row.vocab_size:,}, {training.stopped}")
    return notes
