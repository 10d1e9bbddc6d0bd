"""WordPiece encoding, as in the textbook: try the longest piece, then ever shorter ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpe.models import WordPiece


def encode(word: bytes, *, ids: Mapping[bytes, int], model: WordPiece) -> list[int]:
    """The ids of a word, or that of the unknown token alone.

    Devlin et al., "BERT" (2019): ``WordpieceTokenizer.tokenize`` of its published code.

    Args:
        word: a pre-token; a byte that is not part of well-formed UTF-8 is a character that no
            token has.
        ids: the id of each token that text can make, and of the unknown token.
        model: the prefix of what continues a word, the unknown token, the longest word.

    >>> from bpe.models import WordPiece
    >>> ids = {b"[UNK]": 0, b"un": 1, b"##aff": 2, b"##able": 3}
    >>> encode(b"unaffable", ids=ids, model=WordPiece())
    [1, 2, 3]
    >>> encode(b"unaffected", ids=ids, model=WordPiece())
    [0]
    """
    characters = word.decode("utf-8", "surrogateescape")
    unknown = [ids[model.unknown.encode()]]
    if len(characters) > model.max_characters:
        return unknown
    encoded: list[int] = []
    begin = 0
    while begin < len(characters):
        prefix = model.prefix if begin > 0 else ""
        for end in range(len(characters), begin, -1):
            piece = (prefix + characters[begin:end]).encode("utf-8", "surrogateescape")
            if piece in ids:
                encoded.append(ids[piece])
                begin = end
                break
        else:
            return unknown
    return encoded
