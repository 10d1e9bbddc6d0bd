"""Sections of the report about a tokenizer and its training."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bpe.models import ByteLevel
from pipelines.report import charts
from pipelines.report.counted_facts import add_to_sums
from pipelines.report.writing_systems import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpe import Tokenizer
    from bpe.training_report import Training
    from pipelines.report.encoded_facts import EncodedFacts
    from pipelines.report.page import Facts

_LONGEST = 30
_EXAMPLES = 12
_WORTH = 0.05  # of the tokens, which a vocabulary twice as large should save


def plain(tokenizer: Tokenizer, data: bytes) -> bytes:
    """Return a token without what marks the beginning or the end of words."""
    model = tokenizer.model
    return data.removesuffix(model.end_of_word.encode()).removeprefix(model.prefix.encode())


def ordinary(tokenizer: Tokenizer) -> dict[int, bytes]:
    """Return the tokens by id without special and added ones."""
    whole = {*tokenizer.special_tokens.values(), *tokenizer.added_tokens.values()}
    return {
        id_: data
        for id_, data in enumerate(tokenizer.tokens)
        if data is not None and id_ not in whole
    }


def compression(training: Training) -> Facts:
    """Return the compression of every smaller vocabulary, and what each doubling of it saves."""
    points = training.curve()
    first, last = points[0].vocab_size, points[-1].vocab_size
    sizes = [min(training.initial_vocab + len(training.merges), last)]
    while sizes[-1] // 2 > training.initial_vocab:
        sizes.append(sizes[-1] // 2)
    doubled = [points[size - first] for size in reversed(sizes)] if training.tokens else []
    saved = [1 - after.tokens / before.tokens for before, after in pairwise(doubled)]
    pairs = zip(doubled[:-1], saved, strict=True)
    return {
        "curve": charts.line(
            "Compression by vocabulary size",
            points=[(point.vocab_size, point.bytes_per_token) for point in points],
            axes=("tokens in the vocabulary", "bytes of text per token"),
            logarithmic=(last > 20 * first, False),
            spell_y=lambda value: f"{value:.3f}",
        ),
        "saved": saved,
        "worth": _WORTH,
        "enough": next((point.vocab_size for point, part in pairs if part < _WORTH), None),
        "doublings": [*zip(doubled, [None, *saved], strict=False)],
    }


def superwords(
    training: Training, tokenizer: Tokenizer, encoded: EncodedFacts | None = None
) -> Facts | None:
    """Return the number of tokens that cross words, and the tokens that they save in runs."""
    if (learnt := training.superwords) is None:
        return None
    merges, before = learnt.merges, learnt.initial_tokens
    longest = sorted(merges, key=lambda one: (-len(one.left + one.right), one.left, one.right))
    frequent = sorted(merges, key=lambda one: (-one.count, one.left, one.right))
    ids = {result for _, _, result in tokenizer.superwords}
    return {
        "learnt": learnt,
        "fewer": 1 - learnt.tokens / max(before, 1),
        "curve": charts.line(
            "Tokens of the runs by number of superwords",
            points=[(0, before), *((n + 1, one.tokens_left) for n, one in enumerate(merges))],
            axes=("superwords", "tokens of all runs"),
        ),
        "frequent": frequent[:_LONGEST],
        "longest": longest[:_LONGEST],
        "used": encoded and encoded.most_frequent(ids, tokenizer, _LONGEST),
    }


def merges(training: Training) -> Facts | None:
    """Return how often each merge's pair occurred."""
    numbered = [*enumerate(training.merges, 1)]
    last = max(_EXAMPLES, len(numbered) - _EXAMPLES)
    if not numbered:
        return None
    return {
        "curve": charts.line(
            "Occurrences by merge",
            points=[(number, merge.count) for number, merge in numbered],
            axes=("number of the merge", "occurrences of the pair"),
            logarithmic=(True, True),
        ),
        "examples": [*numbered[:_EXAMPLES], *numbered[last:]],
    }


def ties(training: Training) -> Facts | None:
    """Return the choices of the tie rule."""
    if not training.merges:
        return None
    examples, half = proven_ties(training), _EXAMPLES // 2
    return {
        "examples": [
            (number + 1, training.merges[number], training.merges[number + 1])
            for number in (*examples[:half], *examples[half:][-half:])
        ],
    }


def proven_ties(training: Training) -> list[int]:
    """Return the numbers, from 0, of the merges that a tie rule chose, as the next merge proves.

    Where merge k + 1 has the count of merge k, and neither of its symbols is the one that merge k
    made, its pair was there before merge k, and as often: merge k can only take occurrences from
    it, and no pair occurred more often. (A rival that lost some of its occurrences by merge k is
    not found so: ``Training.tied`` has all.) Of WordPiece there are none: its scores are not known.
    """
    if training.score != "count":
        return []
    repeated = set(training.repeated)  # these can bring back pairs of other symbols
    return [
        number
        for number, (chosen, after) in enumerate(pairwise(training.merges))
        if after.count == chosen.count
        and number not in repeated
        and chosen.left + chosen.right not in (after.left, after.right)
    ]


def lengths(tokenizer: Tokenizer, encoded: EncodedFacts | None = None) -> Facts:
    """Return the lengths of tokens, and the longest ones."""
    ids = ordinary(tokenizer)
    sizes = [*map(len, ids.values())]
    return {
        "bars": charts.lengths(
            "Token lengths",
            sums=add_to_sums({}, sizes, _times(ids, encoded), sizes),
            axis="bytes of the token",
            legend=["percent"] if encoded is None else ["of the vocabulary", "of the corpus"],
        ),
        "longest": sorted(ids.items(), key=lambda item: (-len(item[1]), item[0]))[:_LONGEST],
    }


def scripts(tokenizer: Tokenizer, encoded: EncodedFacts | None = None) -> Facts:
    """Return the scripts that the vocabulary covers, and how well."""
    ids = ordinary(tokenizer)
    texts = [plain(tokenizer, data) for data in ids.values()]
    sums = add_to_sums({}, map(kind_of, texts), _times(ids, encoded), map(len, texts))
    return {
        "is_of_bytes": isinstance(tokenizer.model, ByteLevel),
        "kinds": sorted(
            sums.items(), key=lambda item: (-item[1].times, -item[1].distinct, item[0])
        ),
        "all": len(ids),
        "all_used": sum(one.times for one in sums.values()) or 1,
    }


def _times(ids: Iterable[int], encoded: EncodedFacts | None) -> list[int]:
    """Return the occurrences of some ids; 0 of each without a corpus."""
    return [0 if encoded is None else int(encoded.tokens[id_]) for id_ in ids]


def frequencies(tokenizer: Tokenizer, encoded: EncodedFacts) -> Facts:
    """Return how often tokens occur in an encoded corpus; the most frequent and the rarest."""
    counts = np.sort(encoded.tokens[encoded.tokens > 0])[::-1]
    sums = np.cumsum(counts)
    ids = ordinary(tokenizer)
    rows = encoded.most_frequent(ids, tokenizer, len(ids))
    used = [row for row in rows if row[2]]
    return {
        "curve": charts.line(
            "Occurrences of tokens",
            points=[(rank, count) for rank, count in enumerate(counts.tolist(), 1)],
            axes=("rank of the token", "occurrences"),
            logarithmic=(True, True),
        ),
        "half": int(np.searchsorted(2 * sums, sums[-1])) + 1 if len(sums) else 0,
        "of": len(ids),
        "never": len(rows) - len(used),
        "frequent": used[:_LONGEST],
        "rarest": used[::-1][:_LONGEST],
        "unused": rows[len(used) :][:_LONGEST],
    }
