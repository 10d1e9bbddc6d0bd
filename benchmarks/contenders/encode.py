"""Encode a column of texts on one core: the first pass is cold, the second warm.

What stands ready before the clock starts is what each API takes: an Arrow column, a list of str, a
buffer or a text file with separators; and the tokenizer, loaded. Loading is a measure of its own:
who fills tables there need not fill them in the first pass.
"""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import vocabularies
from benchmarks.contenders.report import SEPARATOR, Report, ids_digest, rows_digest, timed
from benchmarks.corpora import column, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa


class Work(NamedTuple):
    """What is timed, and the digest of what it returns."""

    load: float  # seconds from the vocabulary's file to a tokenizer
    encode: Callable[[], Any]
    digest: Callable[[Any], str]


def beam_bpe(texts: pa.Array, vocabulary: str) -> Work:
    """``encode_arrow``: Arrow in, Arrow out."""
    load, tokenizer = timed(lambda: vocabularies.load(vocabulary))

    def digest(rows: pa.ListArray) -> str:
        return ids_digest(rows.values.to_numpy(), np.diff(rows.offsets.to_numpy()))

    return Work(load, lambda: tokenizer.encode_arrow(texts), digest)


def tiktoken(texts: pa.Array, vocabulary: str) -> Work:
    """``encode_ordinary`` on each text."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    import bpe

    pattern = bpe.PATTERNS[vocabularies.PUBLISHED[vocabulary].pretokenizer]
    path = str(vocabularies.ranks(vocabulary))
    load, encoding = timed(
        lambda: tiktoken.Encoding(
            vocabulary,
            pat_str=pattern,
            mergeable_ranks=load_tiktoken_bpe(path),
            special_tokens={},
        )
    )
    rows = texts.to_pylist()
    return Work(load, lambda: [encoding.encode_ordinary(text) for text in rows], rows_digest)


def gigatoken(api: str, texts: pa.Array, vocabulary: str) -> Work:
    """One of the inputs that its API takes; without threads of its own."""
    import awkward
    import gigatoken as gt

    path = vocabularies.ranks(vocabulary)
    pretokenizer = vocabularies.PUBLISHED[vocabulary].pretokenizer
    load, tokenizer = timed(lambda: gt.Tokenizer.from_tiktoken(path, pretokenizer))

    def digest(ids: Any) -> str:
        lengths = awkward.to_numpy(awkward.num(ids))
        return ids_digest(awkward.to_numpy(awkward.flatten(ids)), lengths)

    if api == "list":
        rows = texts.to_pylist()
        return Work(load, lambda: tokenizer.encode_batch(rows, parallel=False), digest)
    if api == "arrow":
        array = awkward.from_arrow(texts)
        return Work(load, lambda: tokenizer.encode_batch(array, parallel=False), digest)
    joined = SEPARATOR.join(texts.to_pylist()).encode()
    if api == "buffer":
        source = gt.BytesSource(joined, separator=SEPARATOR)
        return Work(load, lambda: tokenizer.encode_batch(source, parallel=False), digest)
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(joined)
    atexit.register(Path(file.name).unlink)
    texts_file = gt.TextFileSource([file.name], separator=SEPARATOR)
    return Work(load, lambda: tokenizer.encode_files(texts_file, parallel=False), digest)


def huggingface(texts: pa.Array, vocabulary: str) -> Work:
    """``encode_batch_fast``, from the tokenizer.json of the same vocabulary."""
    import tokenizers

    path = str(vocabularies.tokenizer_json(vocabulary))
    load, loaded = timed(lambda: tokenizers.Tokenizer.from_file(path))
    rows = texts.to_pylist()
    return Work(
        load,
        lambda: loaded.encode_batch_fast(rows, add_special_tokens=False),
        lambda found: rows_digest([one.ids for one in found]),
    )


def fastokens(texts: pa.Array, vocabulary: str) -> Work:
    """Its batch API, from the tokenizer.json of the same vocabulary."""
    import fastokens

    path = str(vocabularies.tokenizer_json(vocabulary))
    load, loaded = timed(lambda: fastokens.Tokenizer.from_file(path))
    rows = texts.to_pylist()

    def digest(found: Any) -> str:
        return rows_digest([one if isinstance(one, list) else one.ids for one in found])

    return Work(load, lambda: loaded.encode_batch(rows, split_special_tokens=True), digest)


CONTENDERS: dict[str, Callable[[pa.Array, str], Work]] = {
    "beam-bpe": beam_bpe,
    "gigatoken, list": lambda texts, name: gigatoken("list", texts, name),
    "gigatoken, Arrow": lambda texts, name: gigatoken("arrow", texts, name),
    "gigatoken, buffer": lambda texts, name: gigatoken("buffer", texts, name),
    "gigatoken, file": lambda texts, name: gigatoken("file", texts, name),
    "tiktoken": tiktoken,
    "fastokens": fastokens,
    "tokenizers": huggingface,
}


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts and the files of the vocabulary."""
    corpus, size, vocabulary = arguments
    column(corpus, int(size))
    vocabularies.tokenizer_json(vocabulary)


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Encode twice.

    Args:
        name: of `CONTENDERS`.
        arguments: the corpus, bytes of it, the vocabulary.
        check: whether both passes are compared, instead of timed.

    Raises:
        RuntimeError: the two passes differ.
    """
    corpus, size, vocabulary = arguments
    texts = column(corpus, int(size))
    work = CONTENDERS[name](texts, vocabulary)
    if check:
        first, second = (work.digest(work.encode()) for _ in range(2))
        if first != second:
            raise RuntimeError(f"{name}: the second pass over the same texts gives other ids")
        return Report(digest=first, measures={}, text_bytes=text_bytes(texts))
    cold, found = timed(work.encode)
    del found
    warm, found = timed(work.encode)
    return Report(
        digest=work.digest(found),
        measures={"cold": cold, "warm": warm, "load": work.load},
        text_bytes=text_bytes(texts),
    )
