"""What a tokenizer file says, before it is a tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bpe.models import ByteLevel, Model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from typing_extensions import Buffer

    from bpe.formats.limits import Lack
    from bpe.pretokenize import Pretokenizer


@dataclass(frozen=True, kw_only=True)
class TokenizerParts:
    """The arguments of :class:`bpe.Tokenizer`, which checks that they fit together.

    Attributes:
        tokens: the bytes of each id; None where no token has the id.
        merges: (left, right, result) ids, or a buffer of uint32 triples; the first merge first.
        pretokenizer: how text is cut before merging.
        special_tokens: tokens that only a caller who allows them can have in a text.
        added_tokens: tokens that are cut out of every text whole.
        ignore_merges: whether a pre-token that is a token is that token, whatever the merges.
        model: what a pre-token consists of before and after merging.
        post_processor: Hugging Face's, kept for the file; ids of plain encoding do not depend
            on it.
    """

    tokens: Sequence[bytes | None]
    merges: Sequence[tuple[int, int, int]] | Buffer
    pretokenizer: Pretokenizer
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    added_tokens: Mapping[str, int] = field(default_factory=dict)
    ignore_merges: bool = False
    model: Model = field(default_factory=ByteLevel)
    post_processor: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TokenizerFiles:
    """A tokenizer as the files of a format.

    Attributes:
        contents: what each file holds, in the order in which they are written.
        lacks: what the files do not hold, by its name in ``limits.LEAVE_OUT``: to be given again
            when they are loaded.
        dialect: why a tokenizer.json is of the dialect that only this library reads; None where
            it is Hugging Face's.
    """

    contents: Mapping[Path, bytes]
    lacks: Mapping[str, Lack]
    dialect: str | None = None
