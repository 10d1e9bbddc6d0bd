"""Counting pre-tokens, as in the textbook."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bpe.reference.pretokenize import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe.pretokenize import Pretokenizer


def count(
    texts: Iterable[bytes],
    *,
    pretokenizer: str | Pretokenizer,
    special_tokens: Sequence[bytes] = (),
) -> Counter[bytes]:
    """How often each pre-token occurs, in the order in which they occur first.

    Args:
        texts: any bytes.
        pretokenizer: a pre-tokenizer or the name of one.
        special_tokens: texts are cut at them (the longest where several begin); not counted.
    """
    longest_first = sorted(special_tokens, key=len, reverse=True)
    special = re.compile(b"|".join(map(re.escape, longest_first)) or b"(?!)")
    counts: Counter[bytes] = Counter()
    for text in texts:
        for segment in special.split(text):
            counts.update(split(pretokenizer, segment))
    return counts
