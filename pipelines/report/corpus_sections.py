"""Sections of the report about counts, encoded documents, exports and comparisons."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from pipelines.report import charts
from pipelines.report.counted_facts import Sums
from pipelines.report.page import DASH, shortened

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.report.counted_facts import CountedFacts
    from pipelines.report.encoded_facts import EncodedFacts
    from pipelines.report.page import Facts

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


def counted(counts: CountedFacts, tokenizer: Tokenizer | None = None) -> Facts:
    """Return the counts: of pre-tokens, or of runs of the tokens of a tokenizer."""
    name, unit = ("pre-token", "bytes") if counts.manifest.runs is None else ("run", "tokens")
    per_power = [
        counts.powers.get(power, Sums()) for power in range(max(counts.powers, default=-1) + 1)
    ]

    def text(key: bytes) -> bytes:
        if counts.id_bytes is None or tokenizer is None:
            return key
        ids = np.frombuffer(key, f"<u{counts.id_bytes}").tolist()
        return b"".join(map(tokenizer.token_bytes, ids))

    legend = (f"of distinct {name}s", "of the corpus")
    return {
        "name": name,
        "unit": unit,
        "scale": counts.manifest.scale,
        "rare": counts.powers.get(0, Sums()).distinct,
        "distinct": max(counts.distinct, 1),
        "frequencies": charts.bars(
            f"{name.capitalize()} frequencies",
            labels=[*map(_power, range(len(per_power)))],
            counts=[[one.distinct for one in per_power], [one.times for one in per_power]],
            axis=f"occurrences of the {name}",
            legend=legend,
        ),
        "lengths": charts.lengths(
            f"{name.capitalize()} lengths",
            sums=counts.lengths,
            axis=f"{unit} of the {name}",
            legend=legend,
        ),
        "frequent": [(text(key), count) for count, key in counts.frequent],
        "longest": [(text(key), size, count) for size, count, key in counts.longest],
    }


def tokens_per_document(encoded: EncodedFacts) -> Facts:
    """Return how many tokens documents have."""
    bins: Counter[int] = Counter()
    for size, rows in enumerate(encoded.lengths.tolist()):
        if rows:
            bins[size.bit_length()] += rows
    powers = range(min(bins, default=0), max(bins, default=-1) + 1)
    return {
        "bars": charts.bars(
            "Tokens per document",
            labels=["0" if power == 0 else _power(power - 1) for power in powers],
            counts=[[bins[power] for power in powers]],
            axis="tokens of the document",
            legend=["percent of documents"],
        ),
        "shares": [(f"{share:.0%}", encoded.length_at(share)) for share in _SHARES if encoded.rows],
        "tokens": int(encoded.tokens.sum()),
    }


def samples(encoded: EncodedFacts, tokenizer: Tokenizer) -> Facts | None:
    """Return a few documents as coloured tokens."""
    if not encoded.samples:
        return None
    data = {id_: tokenizer.tokens[id_] for row in encoded.samples for id_ in row.ids}
    return {
        "texts": {id_: "(no token)" if of is None else shortened(of) for id_, of in data.items()},
        "ends": {id_ for id_, of in data.items() if of is not None and of.endswith(b"\n")},
        "special": set(tokenizer.special_tokens.values()),
    }


def _power(power: int) -> str:
    """Return the numbers from 2^power to below the next power of two."""
    first, last = 2**power, 2 ** (power + 1) - 1
    return str(first) if first == last else f"{_short(first)}{DASH}{_short(last)}"


def _short(number: int) -> str:
    for least, scale, unit in ((10**9, 10**9, "G"), (10**6, 10**6, "M"), (10**4, 1000, "k")):
        if number >= least:
            return f"{number / scale:.0f}{unit}"
    return str(number)
