"""Count the pre-tokens of texts, as GPT-2 cuts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bpe
from benchmarks.contenders.report import SEPARATOR, Report, strings_digest, timed
from benchmarks.corpora import column, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    Count = Callable[[], Callable[[], Iterable[tuple[bytes, int]]]]  # what it made is read later


def beam_bpe(texts: pa.Array) -> Count:
    """``count_pretokens`` over an Arrow column; the counts come out sorted."""
    return lambda: bpe.count_pretokens(texts, pretokenizer="gpt2").items


def gigatoken(texts: pa.Array) -> Count:
    """Count as its trainer does, over one buffer; it makes a list of pairs."""
    from gigatoken.gigatoken_rs import pretokenized_counts

    joined = SEPARATOR.join(texts.to_pylist()).encode()

    def count() -> Callable[[], Iterable[tuple[bytes, int]]]:
        pairs = pretokenized_counts(joined, SEPARATOR.encode())
        return lambda: pairs

    return count


CONTENDERS: dict[str, Callable[[pa.Array], Count]] = {
    "beam-bpe": beam_bpe,
    "gigatoken": gigatoken,
}


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts."""
    column(arguments[0], int(arguments[1]))


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Count once; the arguments are the corpus and bytes of it."""
    corpus, size = arguments
    texts = column(corpus, int(size))
    seconds, pairs = timed(CONTENDERS[name](texts))
    found = sorted((bytes(pretoken), count) for pretoken, count in pairs())
    return Report(
        digest=strings_digest((pretoken, b"%d" % count) for pretoken, count in found),
        measures={} if check else {"count": seconds},
        text_bytes=text_bytes(texts),
    )
