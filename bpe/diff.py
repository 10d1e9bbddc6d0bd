"""Differences between two tokenizers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.counts import PretokenCounts, require_pretokens
from bpe.errors import CountsError, TokenizerError
from bpe.parts import Merges
from bpe.pretokenizer import Pretokenizer
from bpe.tokenizer import Tokenizer

_ROWS = 1 << 16  # pre-tokens that are encoded at a time


@dataclass(frozen=True)
class MovedMerge:
    """A merge that both tokenizers have, at other ranks (from 0)."""

    left: bytes
    right: bytes
    old_rank: int
    new_rank: int


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Differences of two tokenizers; tokens and merges are compared by their bytes.

    Attributes:
        gained: tokens that only the new one has, in the order of their ids.
        lost: tokens that only the old one has, in the order of their ids.
        renumbered: tokens of both whose ids differ.
        gained_merges: merges (left, right) that only the new one has, by rank.
        lost_merges: merges that only the old one has, by rank.
        moved_merges: shared merges whose place among the shared merges differs; the farthest
            move first, then by old rank.
        kept_merges: the number of shared merges.
        settings: what else differs, by name: how text is cut, special tokens, the model.
    """

    gained: tuple[bytes, ...]
    lost: tuple[bytes, ...]
    renumbered: int
    gained_merges: tuple[tuple[bytes, bytes], ...]
    lost_merges: tuple[tuple[bytes, bytes], ...]
    moved_merges: tuple[MovedMerge, ...]
    kept_merges: int
    settings: dict[str, tuple[str, str]]

    @property
    def is_empty(self) -> bool:
        """True if nothing differs."""
        return not any(value for name, value in vars(self).items() if name != "kept_merges")


@dataclass(frozen=True)
class Fit:
    """The length of a counted corpus: ``bytes`` of its pre-tokens, and ``tokens``."""

    bytes: int
    tokens: int

    @property
    def bytes_per_token(self) -> float | None:
        """None without tokens."""
        return self.bytes / self.tokens if self.tokens else None


@dataclass(frozen=True)
class Agreement:
    """The part of counted texts that two tokenizers split alike.

    Attributes:
        texts: the number of texts, occurrences counted.
        texts_that_differ: the number of texts of which both make different tokens.
        tokens: the number of tokens that the first makes of all texts.
        tokens_that_differ: the number of these tokens that the second does not make of the same
            bytes.
    """

    texts: int
    texts_that_differ: int
    tokens: int
    tokens_that_differ: int


def compare(old: Tokenizer, new: Tokenizer) -> Difference:
    """Return what changed from ``old`` to ``new``."""
    ids_old, ids_new = old.parts.ids, new.parts.ids
    ranks_old, ranks_new = _ranks(old), _ranks(new)
    both = [merge for merge in ranks_old if merge in ranks_new]
    # Ranks among the shared merges: one new merge at the front does not move all others.
    place = {merge: i for i, merge in enumerate(sorted(both, key=ranks_new.__getitem__))}
    moved = [
        (abs(place[merge] - i), MovedMerge(*merge, ranks_old[merge], ranks_new[merge]))
        for i, merge in enumerate(both)
        if place[merge] != i
    ]
    ours, its = _settings(old), _settings(new)
    moved.sort(key=lambda item: (-item[0], item[1].old_rank))
    return Difference(
        gained=tuple(token for token in ids_new if token not in ids_old),
        lost=tuple(token for token in ids_old if token not in ids_new),
        renumbered=sum(ids_new.get(token, id_) != id_ for token, id_ in ids_old.items()),
        gained_merges=tuple(merge for merge in ranks_new if merge not in ranks_old),
        lost_merges=tuple(merge for merge in ranks_old if merge not in ranks_new),
        moved_merges=tuple(merge for _, merge in moved),
        kept_merges=len(both),
        settings={name: (mine, its[name]) for name, mine in ours.items() if mine != its[name]},
    )


def fit(tokenizer: Tokenizer, counts: PretokenCounts) -> Fit:
    """Return the length of a counted corpus in tokens of a tokenizer.

    Its pre-tokens stay as they were counted, whatever the tokenizer's own pre-tokenizer.

    Raises:
        CountsError: the counts are of runs, or the tokenizer has superwords.
        UnknownCharacterError: a character has no token, and there is no unknown token.
    """
    require_pretokens(counts, title="the corpus", remedy="give the counts of its pre-tokens")
    if tokenizer.superwords:
        raise CountsError(
            "counts of pre-tokens do not say how often superwords occur, which cross them: compare "
            "the tokenizers on texts (bpe compare)"
        )
    uncut = Tokenizer(
        tokens=tokenizer.tokens,
        merges=tokenizer.merges,
        pretokenizer=Pretokenizer("none"),
        ignore_merges=tokenizer.ignore_merges,
        model=tokenizer.model,
    )
    sums = np.zeros(2, object)
    for pretokens, times in _rows(counts):
        lengths = pc.list_value_length(uncut.encode_arrow(pretokens)).to_numpy()
        sums += _totals([pc.binary_length(pretokens).to_numpy(), lengths], times)
    return Fit(*sums.tolist())


def agreement(
    first: Tokenizer, second: Tokenizer, *, counts: PretokenCounts, words: Tokenizer | None = None
) -> Agreement:
    """Return how much of a counted corpus two tokenizers split alike; each key is a text by itself.

    Args:
        first: a byte-level tokenizer that drops nothing of a text.
        second: another such tokenizer.
        counts: counts of pre-tokens, or of runs.
        words: for runs, the tokenizer whose tokens they are.

    Raises:
        CountsError: the runs are of another tokenizer, or it is not given.
        TokenizerError: a text may not decode to itself.
    """
    if counts.runs is not None and (words is None or words.text_sha256 != counts.runs.tokenizer):
        raise CountsError(
            "the runs are of another tokenizer: give the one that they were counted with"
        )
    if not first.lossless or not second.lossless:
        raise TokenizerError("tokens are compared by their bytes: both must be lossless")
    sizes = token_sizes(first), token_sizes(second)
    sums = np.zeros(4, object)
    for keys, times in _rows(counts):
        if counts.runs is not None and words is not None:
            keys = words.decode_arrow(_run_ids(keys, counts.runs.id_bytes))  # noqa: PLW2901
        lists = first.encode_arrow(keys), second.encode_arrow(keys)
        lengths, others = (pc.list_value_length(one).to_numpy() for one in lists)
        same = same_tokens(*lists, sizes=sizes)
        differ = (same < lengths) | (same < others)
        sums += _totals([np.ones_like(times), differ, lengths, lengths - same], times)
    return Agreement(*sums.tolist())


def _rows(counts: PretokenCounts) -> Iterator[tuple[pa.Array, npt.NDArray[np.int64]]]:
    """Yield the keys of some counts at a time, and how often each occurs."""
    for first in range(0, len(counts), _ROWS):
        yield counts.pretokens.slice(first, _ROWS), counts.counts.slice(first, _ROWS).to_numpy()


def _totals(columns: Sequence[npt.ArrayLike], times: npt.NDArray[np.int64]) -> Any:
    """Return the sums of columns, each row times its occurrences; they may exceed an int64."""
    return np.asarray(columns).astype(object) @ times.astype(object)


def _run_ids(keys: pa.Array, id_bytes: int) -> pa.ListArray:
    """Return the ids of runs."""
    data = np.frombuffer(b"".join(keys.to_pylist()), np.dtype(f"<u{id_bytes}"))
    lengths = pc.binary_length(keys).to_numpy() // id_bytes
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(data))


def token_sizes(tokenizer: Tokenizer) -> npt.NDArray[np.int64]:
    """Return the bytes of each token, by id."""
    return np.array([len(token or b"") for token in tokenizer.tokens], np.int64)


def same_tokens(
    first: pa.ListArray,
    second: pa.ListArray,
    *,
    sizes: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
) -> npt.NDArray[np.int64]:
    """Return how many tokens of each text two tokenizers make of the same bytes of it.

    Args:
        first: the ids of each text, by a lossless tokenizer, without nulls.
        second: the ids of the same texts, by another tokenizer.
        sizes: :func:`token_sizes` of both.

    Returns:
        One number for each text.

    Raises:
        TokenizerError: a text has other lengths, in bytes of its tokens.
    """
    (bounds, rows), (others, other_rows) = (
        (_sums(size[pc.list_flatten(lists).to_numpy()]), _sums(pc.list_value_length(lists)))
        for lists, size in zip((first, second), sizes, strict=True)
    )
    if not np.array_equal(bounds[rows], others[other_rows]):
        raise TokenizerError("tokens are compared by their bytes: both must be of the same texts")
    at = np.searchsorted(others[1:], bounds[1:])  # both end together
    same = (others[1:][at] == bounds[1:]) & (others[:-1][at] == bounds[:-1])
    before = _sums(same)
    return np.asarray(before[rows[1:]] - before[rows[:-1]])


def _sums(numbers: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the sums of the first numbers, from none to all of them."""
    return np.concatenate([[0], np.cumsum(numbers, dtype=np.int64)])


def _ranks(tokenizer: Tokenizer) -> dict[tuple[bytes, bytes], int]:
    """Return the ranks of all merges, those of superwords last."""
    parts = tokenizer.parts
    return parts.ranks(Merges(parts.merges.flat + parts.superwords.flat))


def _settings(tokenizer: Tokenizer) -> dict[str, str]:
    return {
        "pretokenizer": str(tokenizer.pretokenizer),
        "model": repr(tokenizer.model),
        "superwords": f"{len(tokenizer.superwords):,}",
        "special tokens": " ".join(islice(tokenizer.special_tokens, 20)) or "none",
    }
