"""Tokenizers for ``tests.bpe.fuzz``, of every model: made of a few merges, or trained."""

from __future__ import annotations

import functools
import random
import re
from typing import Any

import bpe
from bpe.counts import PretokenCounts
from bpe.errors import BpeError
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece
from bpe.normalizer import NORMALIZERS
from bpe.pretokenizer import PRETOKENIZERS, Pretokenizer
from bpe.reference.encode import encode
from bpe.reference.pretokenize import split
from bpe.ties import TIES, needs_order
from tests.bpe.models import make
from tests.bpe.vocabularies import BYTES, ranked_tokens, small_tokenizer

POOL = 48  # tokenizers that are made once: their caches of words are used again and again
END = "<|endoftext|>"
UNORDERED_TIES = tuple(
    ties for ties in TIES if ties != "huggingface" and not needs_order(ties)
)  # for any model and any counts


class ByReference:
    """A tokenizer, and the textbook's tables of it."""

    def __init__(self, tokenizer: bpe.Tokenizer) -> None:
        self.tokenizer = tokenizer
        model = tokenizer.model
        self._unknown = None if isinstance(model, ByteLevel) else model.unknown
        special = {token for token in tokenizer.special_tokens if token != self._unknown}
        hidden = {token.encode() for token in (*special, *tokenizer.added_tokens)}
        tokens = tokenizer.tokens
        self._ids = {
            token: id_ for id_, token in enumerate(tokens) if token and token not in hidden
        }
        self._ranks = {
            (tokens[a] or b"", tokens[b] or b""): rank
            for rank, (a, b, _) in enumerate(tokenizer.merges)
        }

    def ids(
        self, text: bytes, *, allowed: object = (), dropout: float = 0.0, seed: int = 0
    ) -> list[int] | None:
        """The ids of a text, or None where a character has none; dropout without cut-out tokens."""
        whole = dict(self.tokenizer.added_tokens)
        if allowed == "all":
            whole |= self.tokenizer.special_tokens
        contents = sorted((token.encode() for token in whole), key=len, reverse=True)
        between = b"|".join(map(re.escape, contents)) or b"(?!)"
        ids = []
        position = 0
        for match in [*re.finditer(between, text), None]:
            part = text[position : match.start() if match else len(text)]
            try:
                ids += self._ordinary(part, dropout, seed, behind_special=position > 0)
            except KeyError:
                return None
            if match:
                ids.append(whole[match.group().decode()])
                position = match.end()
        return ids

    def _ordinary(
        self, text: bytes, dropout: float, seed: int, *, behind_special: bool
    ) -> list[int]:
        cut = self.tokenizer.pretokenizer
        pretokens = split(cut, text, behind_special=behind_special)
        return encode(
            pretokens,
            ids=self._ids,
            ranks=self._ranks,
            model=self.tokenizer.model,
            ignore_merges=self.tokenizer.ignore_merges,
            whole={pretoken for pretoken in pretokens if cut.is_never_split(pretoken)},
            dropout=dropout,
            seed=seed,
        )


def drawn_tokenizer(data: bytes, dice: random.Random) -> ByReference:
    """One of the pool, or one that is trained on the data."""
    if dice.random() < 0.6:
        return pooled(dice.randrange(POOL))
    try:
        return ByReference(trained(data, dice))
    except BpeError:  # data that this model cannot be trained on
        return pooled(dice.randrange(POOL))


@functools.cache
def pooled(number: int) -> ByReference:
    """Tokenizer number so-and-so."""
    dice = random.Random(number)
    if number % 4 == 0:
        return ByReference(strings(dice))
    if number % 4 == 1:
        return ByReference(few_merges(dice))
    return ByReference(
        small_tokenizer(
            PRETOKENIZERS[number // 2 % len(PRETOKENIZERS)],
            ignore_merges=dice.random() < 0.3,
            special_tokens=(END,),
            added_tokens=("<|end|>",) if dice.random() < 0.2 else (),
        )
    )


def cut(dice: random.Random) -> Pretokenizer:
    """A name, now and then with a normalizer or what is never split."""
    normalizer = (dice.choice(NORMALIZERS),) if dice.random() < 0.25 else ()
    never_split = ("url", "email") if dice.random() < 0.15 else ()
    name = dice.choice(PRETOKENIZERS)
    return Pretokenizer(name, normalizer=normalizer, never_split=never_split)


def few_merges(dice: random.Random) -> bpe.Tokenizer:
    """Merges of few letters that overlap, make a string twice, or are never reached."""
    tokens: list[bytes | None] = list(BYTES)
    ids = {token: id_ for id_, token in enumerate(BYTES)}
    merges: dict[tuple[int, int], int] = {}
    letters = dice.choice((b"ab ", b"the ", "é漢".encode(), b"0 \n", b"\xff\x80a"))
    for _ in range(dice.choice((3, 15, 40))):
        left, right = (dice.choice([*letters, *range(256, len(tokens))]) for _ in range(2))
        made = (tokens[left] or b"") + (tokens[right] or b"")
        if len(made) <= 24:
            if made not in ids:
                ids[made] = len(tokens)
                tokens.append(made)
            merges.setdefault((left, right), ids[made])
    table = [(*pair, result) for pair, result in merges.items()]
    dice.shuffle(table)
    special = {END: len(tokens) + 1}
    return bpe.Tokenizer(
        tokens=[*tokens, None, END.encode()],
        merges=table,
        pretokenizer=cut(dice),
        special_tokens=special,
        ignore_merges=dice.random() < 0.3,
    )


def strings(dice: random.Random) -> bpe.Tokenizer:
    """Characters or WordPieces over a few letters and pieces of real text."""
    letters = dice.choice(("abthe", "aé漢\N{SLIGHTLY SMILING FACE}", "0123<>/w#", "eiou \n."))
    ranked = [token.decode("utf-8", "ignore") for token in ranked_tokens()[256:400]]
    more: dict[str, Any] = {"pretokenizer": cut(dice), "ignore_merges": dice.random() < 0.3}
    if dice.random() < 0.5:
        prefix = dice.choice(("##", "", "é"))
        pieces = [*letters, *dice.sample(ranked, 40)]
        pieces += [prefix + piece for piece in dice.sample(pieces, len(pieces) * 3 // 4)]
        most = dice.choice((3, 8, 100))
        del more["ignore_merges"]
        return make(
            dict.fromkeys(["[UNK]", *filter(None, pieces)]),
            special=["[UNK]"],
            model=WordPiece(prefix=prefix, max_characters=most),
            **more,
        )
    end = dice.choice(("</w>", "", "\N{BULLET}"))
    known = [*letters, *([end] if end else [])]
    pairs: dict[tuple[str, str], None] = {}
    for _ in range(dice.choice((0, 5, 30))):
        left = dice.choice([string for string in known if not end or not string.endswith(end)])
        pair = (left, dice.choice(known))
        if len(left + pair[1]) <= 12:
            pairs[pair] = None
            known += [left + pair[1]] if left + pair[1] not in known else []
    unknown = dice.choice(("<unk>", None))
    order = list(pairs)
    dice.shuffle(order)
    return make(
        dict.fromkeys([*([unknown] if unknown else []), *known]),
        order,
        special=[unknown] if unknown else [],
        model=CharacterLevel(end_of_word=end, unknown=unknown),
        **more,
    )


def trained(data: bytes, dice: random.Random) -> bpe.Tokenizer:
    """A tokenizer of any model, trained on the first words of a text."""
    pretokenizer = cut(dice)
    text = data[:400]
    models: list[Model] = [ByteLevel()] * 8
    models += [CharacterLevel(unknown="<unk>"), WordPiece()]  # slow to begin
    model = dice.choice(models)
    if not isinstance(model, ByteLevel):
        text = text.decode("utf-8", "ignore").encode()
    words = {word[:50]: 1 + i % 3 for i, word in enumerate(pretokenizer.split(text)[:40])}
    counts = PretokenCounts.from_items(words or {b"a": 1}, pretokenizer=pretokenizer)
    return bpe.train(
        counts,
        max_merges=dice.choice((2, 10, 40)),
        ties=dice.choice(UNORDERED_TIES),
        model=model,
        special_tokens=(END,) if dice.random() < 0.5 else (),
    )


def drawn_words(data: bytes, dice: random.Random) -> bpe.Tokenizer:
    """A tokenizer of bytes for superwords to be learnt on: most short words are one token."""
    pretokenizer = cut(dice)
    words: dict[bytes, int] = {}
    for word in pretokenizer.split(data[:400])[:60]:
        words[word[:50]] = words.get(word[:50], 0) + 1
    counts = PretokenCounts.from_items(words or {b"a": 1}, pretokenizer=pretokenizer)
    special = (END,) if dice.random() < 0.3 else ()
    return bpe.train(counts, max_merges=dice.choice((5, 60, 200)), special_tokens=special)
