"""Encode texts on one core, in one of four orders.

- ``twice``: a column, and again: the first pass is cold, the second warm;
- a number: the same of a column that was cut into documents of about so many bytes;
- ``shuffled``: three copies of a column, the documents of each in another order;
- ``new words``: ten columns of random words, none of which comes twice.

Before the clock starts, the texts are in the form that each API takes (Arrow columns, lists of
str, buffers or text files with separators), and the tokenizer is loaded. Loading is a measure of
its own: who fills tables there need not fill them in the first pass.
"""

from __future__ import annotations

import atexit
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks import vocabularies
from benchmarks.contenders.report import (
    SEPARATOR,
    Report,
    ids_digest,
    rows_digest,
    strings_digest,
    timed,
)
from benchmarks.contenders.trainer_memory import distinct_words
from benchmarks.corpora import column, text_bytes
from bpe.pretokenizer import PATTERNS
from bpe.tokenizer import Tokenizer  # like the peers, before the clock starts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COPIES, SLICES = 3, 10
_WORDS = 500  # in a document of new words


class Encoder(NamedTuple):
    """A loaded tokenizer."""

    load: float  # seconds from the vocabulary's file to a tokenizer
    ready: Callable[[pa.Array], Callable[[], Any]]  # from texts to what is timed
    digest: Callable[[Any], str]  # of what that returns


def beam_bpe(vocabulary: str) -> Encoder:
    """``encode_arrow``: Arrow in, Arrow out."""
    load, tokenizer = timed(lambda: vocabularies.load(vocabulary))
    return Encoder(load, lambda texts: lambda: tokenizer.encode_arrow(texts), lists_digest)


def variant(vocabulary: str, **options: Any) -> Encoder:
    """The same with a normalizer, text that is never split, or several patterns."""
    if "pattern" not in options:
        options["pretokenizer"] = vocabularies.PUBLISHED[vocabulary].pretokenizer
    path = vocabularies.ranks(vocabulary)
    load, tokenizer = timed(lambda: Tokenizer.load(path, special_tokens=(), **options))
    return Encoder(load, lambda texts: lambda: tokenizer.encode_arrow(texts), lists_digest)


def own_pattern(vocabulary: str) -> Encoder:
    """The same, cut by a pattern of the user's own.

    Raises:
        ValueError: the pattern became a pre-tokenizer with a name.
    """
    pattern = pattern_of(vocabulary)
    load, tokenizer = timed(
        lambda: Tokenizer.load(vocabularies.ranks(vocabulary), pattern=pattern, special_tokens=())
    )
    if tokenizer.pretokenizer.name is not None:
        raise ValueError(f"the pattern {pattern!r} was taken as {tokenizer.pretokenizer}")
    return Encoder(load, lambda texts: lambda: tokenizer.encode_arrow(texts), lists_digest)


def pattern_of(vocabulary: str) -> str:
    """A pattern that matches as the pre-tokenizer of a vocabulary, in other words."""
    return f"(?:{PATTERNS[vocabularies.PUBLISHED[vocabulary].pretokenizer]})"


def lists_digest(rows: pa.ListArray) -> str:
    """The digest of Arrow lists."""
    return ids_digest(rows.values.to_numpy(), np.diff(rows.offsets.to_numpy()))


def tiktoken(vocabulary: str) -> Encoder:
    """``encode_ordinary`` on each text."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    pattern = PATTERNS[vocabularies.PUBLISHED[vocabulary].pretokenizer]
    path = str(vocabularies.ranks(vocabulary))
    load, encoding = timed(
        lambda: tiktoken.Encoding(
            vocabulary,
            pat_str=pattern,
            mergeable_ranks=load_tiktoken_bpe(path),
            special_tokens={},
        )
    )

    def ready(texts: pa.Array) -> Callable[[], Any]:
        rows = texts.to_pylist()
        return lambda: [encoding.encode_ordinary(text) for text in rows]

    return Encoder(load, ready, rows_digest)


def gigatoken(api: str, vocabulary: str) -> Encoder:
    """One of the inputs that its API takes; without threads of its own."""
    import awkward
    import gigatoken as gt

    path = vocabularies.ranks(vocabulary)
    pretokenizer = vocabularies.PUBLISHED[vocabulary].pretokenizer
    load, tokenizer = timed(lambda: gt.Tokenizer.from_tiktoken(path, pretokenizer))

    def digest(ids: Any) -> str:
        lengths = awkward.to_numpy(awkward.num(ids))
        return ids_digest(awkward.to_numpy(awkward.flatten(ids)), lengths)

    def ready(texts: pa.Array) -> Callable[[], Any]:
        if api == "list":
            rows = texts.to_pylist()
            return lambda: tokenizer.encode_batch(rows, parallel=False)
        if api == "arrow":
            array = awkward.from_arrow(texts)
            return lambda: tokenizer.encode_batch(array, parallel=False)
        joined = SEPARATOR.join(texts.to_pylist()).encode()
        if api == "buffer":
            source = gt.BytesSource(joined, separator=SEPARATOR)
            return lambda: tokenizer.encode_batch(source, parallel=False)
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(joined)
        atexit.register(Path(file.name).unlink)
        texts_file = gt.TextFileSource([file.name], separator=SEPARATOR)
        return lambda: tokenizer.encode_files(texts_file, parallel=False)

    return Encoder(load, ready, digest)


def huggingface(vocabulary: str) -> Encoder:
    """``encode_batch_fast``, from the tokenizer.json of the same vocabulary."""
    import tokenizers

    path = str(vocabularies.tokenizer_json(vocabulary))
    load, loaded = timed(lambda: tokenizers.Tokenizer.from_file(path))

    def ready(texts: pa.Array) -> Callable[[], Any]:
        rows = texts.to_pylist()
        return lambda: loaded.encode_batch_fast(rows, add_special_tokens=False)

    return Encoder(load, ready, lambda found: rows_digest([one.ids for one in found]))


def fastokens(vocabulary: str) -> Encoder:
    """Its batch API, from the tokenizer.json of the same vocabulary."""
    import fastokens

    path = str(vocabularies.tokenizer_json(vocabulary))
    load, loaded = timed(lambda: fastokens.Tokenizer.from_file(path))

    def ready(texts: pa.Array) -> Callable[[], Any]:
        rows = texts.to_pylist()
        return lambda: loaded.encode_batch(rows, split_special_tokens=True)

    def digest(found: Any) -> str:
        return rows_digest([one if isinstance(one, list) else one.ids for one in found])

    return Encoder(load, ready, digest)


CONTENDERS: dict[str, Callable[[str], Encoder]] = {
    "beam-bpe": beam_bpe,
    "beam-bpe, own pattern": own_pattern,
    "beam-bpe, normalizer": lambda name: variant(name, normalizer=("nfc",)),
    "beam-bpe, never split": lambda name: variant(name, never_split=("url", "email")),
    "beam-bpe, several patterns": lambda name: variant(
        name, pattern=[r"\p{N}{1,3}", vocabularies.PUBLISHED[name].pretokenizer]
    ),
    "gigatoken, list": lambda name: gigatoken("list", name),
    "gigatoken, Arrow": lambda name: gigatoken("arrow", name),
    "gigatoken, buffer": lambda name: gigatoken("buffer", name),
    "gigatoken, file": lambda name: gigatoken("file", name),
    "tiktoken": tiktoken,
    "fastokens": fastokens,
    "tokenizers": huggingface,
}


def prepare(arguments: Sequence[str]) -> None:
    """Make the texts and the files of the vocabulary."""
    corpus, size, vocabulary, order = arguments
    if order != "new words":
        column(corpus, int(size))
    vocabularies.tokenizer_json(vocabulary)


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Encode.

    Args:
        name: of `CONTENDERS`.
        arguments: the corpus, bytes of it, the vocabulary, the order.
        check: whether nothing is timed.

    Raises:
        RuntimeError: two passes over the same texts differ.
    """
    corpus, size, vocabulary, order = arguments
    texts = texts_of(corpus, int(size), order)
    encoder = CONTENDERS[name](vocabulary)
    encodes = [encoder.ready(column) for column in texts]
    seconds, digests = [], []
    twice = order == "twice" or order.isdecimal()
    for encode in encodes * (2 if twice else 1):
        took, ids = timed(encode)
        seconds.append(took)
        digests.append(encoder.digest(ids))
        del ids
    if twice and digests[0] != digests[1]:
        raise RuntimeError(f"{name}: the second pass over the same texts gives other ids")
    sizes = [text_bytes(column) for column in texts]
    part_bytes = {}
    if twice:
        cold, warm = seconds
        load = encoder.load
        measures = {"cold": cold, "warm": warm, "load": load, "load and cold": load + cold}
    elif order == "shuffled":
        measures = {"cold": sum(seconds), "last third": seconds[-1]}
        part_bytes = {"last third": sizes[-1]}
    else:
        mean = sum(seconds) / SLICES
        measures = {
            "a tenth, on average": mean,
            "a tenth, first": seconds[0],
            "a tenth, last": seconds[-1],
        }
        part_bytes = dict.fromkeys(measures, sum(sizes) // SLICES)
    return Report(
        digest=strings_digest([tuple(digest.encode() for digest in digests)]),
        measures={} if check else measures,
        text_bytes=sum(sizes),
        part_bytes=part_bytes,
    )


def texts_of(corpus: str, size: int, order: str) -> list[pa.LargeStringArray]:
    """The columns that are encoded one after the other."""
    if order == "new words":
        return new_words(size)
    texts = column(corpus, size)
    if order == "twice":
        return [texts]
    if order.isdecimal():
        return [documents_of(texts, int(order))]
    orders = (np.random.default_rng(seed).permutation(len(texts)) for seed in range(COPIES))
    return [texts.take(pa.array(rows)) for rows in orders]


def documents_of(texts: pa.LargeStringArray, size: int) -> pa.LargeStringArray:
    """The same text in documents of about ``size`` bytes, cut before spaces."""
    joined, begin, documents = " ".join(texts.to_pylist()), 0, []
    while begin < len(joined):
        end = joined.find(" ", begin + size)
        end = len(joined) if end < 0 else end
        documents.append(joined[begin:end])
        begin = end
    return pa.array(documents, pa.large_string())


def new_words(size: int) -> list[pa.LargeStringArray]:
    """Documents of words in random order, of which no one is there twice, cut into `SLICES`."""
    distinct = distinct_words(size // 9)  # eight letters, and a space
    order = np.random.default_rng(1).permutation(len(distinct))
    words = distinct.take(pa.array(order)).to_pylist()
    documents = [" ".join(words[i : i + _WORDS]) for i in range(0, len(words), _WORDS)]
    cuts = np.linspace(0, len(documents), SLICES + 1).astype(int).tolist()
    return [pa.array(documents[begin:end], pa.large_string()) for begin, end in pairwise(cuts)]
