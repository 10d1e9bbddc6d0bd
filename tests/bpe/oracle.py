"""The readable twin of a tokenizer and of its training: what the core is compared with."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import regex

from bpe.byte_alphabet import HUGGINGFACE_ORDER
from bpe.counts.files import counts_table
from bpe.counts.pruning import Pruned
from bpe.models import BYTE_TOKENS, ByteLevel, CharacterLevel, WordPiece
from bpe.reference import superwords
from bpe.reference import train as reference
from bpe.reference.encode import encode, runs
from bpe.reference.pretokenize import split
from bpe.special_tokens import TokenFlags

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from bpe import PretokenCounts, Tokenizer, Training
    from bpe._native import SortedCounts
    from bpe.models import Model
    from bpe.reference.train import Learnt

Value = TypeVar("Value")


class ByReference:
    """A tokenizer, and the textbook's tables of it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        parts = tokenizer.parts
        unknown = None if isinstance(parts.model, ByteLevel) else parts.model.unknown
        hidden = {id_ for token, id_ in parts.cut_tokens.items() if token != unknown}
        self.tokenizer = tokenizer
        self._ids = {
            token: id_
            for id_, token in enumerate(tokenizer.tokens)
            if token is not None and id_ not in hidden
        }
        self._words: dict[str, Any] = {
            "ids": self._ids,
            "ranks": parts.ranks(parts.merges),
            "model": parts.model,
            "ignore_merges": parts.ignore_merges,
        }
        self._superwords: dict[str, Any] = {
            "superwords": parts.ranks(parts.superwords),
            "alone": {tokenizer.token_bytes(id_) for id_ in parts.superword_ids},
        }
        self._eligible: dict[str, set[int]] = {}

    def ids(
        self,
        text: bytes,
        *,
        allowed: Collection[str] = (),
        dropout: float = 0.0,
        seed: int = 0,
    ) -> list[int] | None:
        """The ids of a text; None where a character has none."""
        segments, between = self._segments(text, allowed)
        is_never_split = self.tokenizer.pretokenizer.is_never_split
        try:
            ids, *encoded = encode(
                segments,
                whole={word for segment in segments for word in segment if is_never_split(word)},
                dropout=dropout,
                seed=seed,
                **self._words,
                **self._superwords,
            )
        except KeyError:
            return None
        for token, segment in zip(between, encoded, strict=True):
            ids += [self.tokenizer.parts.cut_tokens[token], *segment]
        return ids

    def runs(
        self, rows: Sequence[bytes], *, merge_pattern: str, max_run: int | None
    ) -> Counter[tuple[int, ...]]:
        """The count of each run of tokens in texts that are cut at all special tokens."""
        is_never_split = self.tokenizer.pretokenizer.is_never_split

        def encode_word(word: bytes) -> list[int]:
            whole = {word} if is_never_split(word) else ()
            return encode([[word]], whole=whole, **self._words)[0]

        def encode_text(text: bytes) -> list[int]:
            (first, *others), _ = self._segments(text, ())
            return [] if others else [id_ for word in first for id_ in encode_word(word)]

        if merge_pattern not in self._eligible:
            tokens = {id_: token for token, id_ in self._ids.items()}
            self._eligible[merge_pattern] = {
                id_
                for id_, token in tokens.items()
                if encode_text(token) == [id_]
                and regex.search(merge_pattern, token.decode("utf-8", "surrogateescape"))
            }
        counts: Counter[tuple[int, ...]] = Counter()
        for segment in (part for row in rows for part in self._segments(row, "all")[0]):
            words = [encode_word(word) for word in segment]
            of = self._eligible[merge_pattern]
            for run in runs(words, of=of, never_split=[*map(is_never_split, segment)]):
                ids = tuple(words[number][0] for number in run)
                size = max_run or len(ids)
                pieces = (ids[begin : begin + size] for begin in range(0, len(ids), size))
                counts.update(piece for piece in pieces if len(piece) > 1)
        return counts

    def _segments(
        self, text: bytes, allowed: Collection[str]
    ) -> tuple[list[list[bytes]], list[str]]:
        """The pre-tokens between the tokens that are cut out, and these tokens."""
        parts = self.tokenizer.parts
        special = parts.special_tokens if allowed == "all" else allowed
        segments: list[list[bytes]] = [[]]
        between: list[str] = []
        for part, token in cut_at_tokens(
            text, [*parts.added_tokens, *special], flags=parts.token_flags
        ):
            if token is None:
                segments[-1] = split(parts.pretokenizer, part, after_special=bool(between))
            else:
                between.append(token)
                segments.append([])
        return segments, between


def cut_at_tokens(
    text: bytes, tokens: Sequence[str], *, flags: Mapping[str, TokenFlags]
) -> list[tuple[bytes, str | None]]:
    """The parts of a text: tokens with what they take, and the text between (None).

    As ``AddedVocabulary::extract_and_normalize`` of Hugging Face's ``added_vocabulary.rs``: first
    the tokens that are not ``normalized``, then, in what they leave, the others.
    """
    parts: list[tuple[str, str | None]] = [(text.decode("utf-8", "surrogateescape"), None)]
    for normalized in (False, True):
        named = {token: flags.get(token, TokenFlags()) for token in tokens}
        named = {token: flag for token, flag in named.items() if flag.normalized is normalized}
        parts = [
            found
            for part, token in parts
            for found in (_found(part, named) if token is None else [(part, token)])
        ]
    return [(part.encode("utf-8", "surrogateescape"), token) for part, token in parts if part]


def _found(text: str, tokens: Mapping[str, TokenFlags]) -> Iterator[tuple[str, str | None]]:
    longest_first = sorted(tokens, key=len, reverse=True)
    rest = 0
    for match in re.finditer("|".join(map(re.escape, longest_first)) or "(?!)", text):
        (begin, end), flags = match.span(), tokens[match.group()]
        beside = text[:begin][-1:] + text[end:][:1]
        if flags.single_word and regex.search(r"\w", beside):
            continue
        if flags.lstrip:
            begin = max(regex.search(r"\s*\Z", text[:begin]).start(), rest)
        if flags.rstrip:
            end = regex.compile(r"\s*").match(text, end).end()
        yield text[rest:begin], None
        yield text[begin:end], match.group()
        rest = end
    yield text[rest:], None


def alphabet_of(
    items: Iterable[tuple[bytes, int]], model: Model, *, initial: str, coverage: Fraction
) -> list[bytes]:
    """The symbols of words and of the characters in ``initial``, in the order of their ids.

    Of words the fewest that make up a share of all, as SentencePiece's trainer has it: the most
    frequent ones, of equally frequent ones those of the smallest code points.
    """
    if isinstance(model, ByteLevel):
        return [bytes([byte]) for byte in range(256)]
    counts: Counter[bytes] = Counter()
    for word, count in items:
        for symbol in model.symbols(word)[: -1 if model.end_of_word else None]:
            counts[symbol] += count
    order = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    before = accumulate((counts[symbol] for symbol in order), initial=0)
    wanted = coverage * counts.total()
    symbols = {symbol for symbol, n in zip(order, before, strict=False) if n < wanted}
    for character in initial:  # twice: at the beginning of a word, and within it
        symbols.update(model.symbols(2 * character.encode()))
    return sorted(symbols.union(model.symbols(b"")))


def lost_by_pruning(items: Iterable[tuple[Sequence[int], int]], below: int) -> Pruned:
    """The losses of words of bytes, or runs of ids, where the rare ones are dropped."""
    lost = [(word, count) for word, count in items if count < below]
    pairs: Counter[tuple[int, int]] = Counter()
    ends: Counter[int] = Counter()
    for word, count in lost:
        ends[word[-1]] += count
        for pair in pairwise(word):
            pairs[pair] += count
    return Pruned(
        below=below,
        distinct_pretokens=len(lost),
        occurrences=ends.total(),
        bytes=ends.total() + pairs.total(),
        max_pair=max(pairs.values(), default=0),
        max_end=max(ends.values(), default=0),
    )


def known(value: Value | None) -> Value:
    """The value, which must be there."""
    assert value is not None
    return value


def training_of(tokenizer: Tokenizer) -> Training:
    """The report of a training."""
    return known(tokenizer.training)


def merged(tokenizer: Tokenizer) -> list[tuple[bytes, bytes]]:
    """The pairs that training merged, without their counts."""
    return [(merge.left, merge.right) for merge in training_of(tokenizer).merges]


def in_order(counts: PretokenCounts) -> list[tuple[bytes, int]]:
    """The pre-tokens in the order of first occurrence."""
    table = counts.to_table().to_pydict()
    places = zip(table["first_document"], table["first_position"], strict=True)
    return [item for _, item in sorted(zip(places, counts.items(), strict=True))]


def learn(
    counts: PretokenCounts,
    *,
    ties: str,
    model: Model,
    pair_counts: str = "overlapping",
    vocab_size: int | None = None,
    initial: str = "",
    coverage: Fraction = Fraction(1),
    forbidden: tuple[bytes, ...] = (),
    extend: Tokenizer | None = None,
    **limits: Any,
) -> Learnt:
    """The training of ``bpe.reference`` on counts, which may go on where a tokenizer ends.

    Ties ``huggingface`` are those of ids in another order of bytes. Hugging Face's trainer differs
    from the textbook where two merges make the same string, which merges of bytes never do.
    """
    items = in_order(counts)
    split_items = [item for item in items if not counts.pretokenizer.is_never_split(item[0])]
    whole = [(model.as_token(word), n) for word, n in items if (word, n) not in split_items]
    whole = reference.sort_whole(whole, ties)
    if extend is None:
        alphabet = alphabet_of(split_items, model, initial=initial, coverage=coverage)
    else:
        alphabet = [token for token in extend.tokens if token is not None]
        known = [tuple(map(extend.token_bytes, pair)) for *pair, _ in extend.merges]
        limits |= {"known": known, "look_up": extend.ignore_merges}
    by_huggingface = ties == "huggingface"
    if by_huggingface:
        alphabet = [bytes([byte]) for byte in HUGGINGFACE_ORDER]
    apart = {*BYTE_TOKENS} if model.byte_fallback else set()
    forbidden += tuple(apart)
    if isinstance(model, CharacterLevel) and model.unknown is not None:
        apart.add(model.unknown.encode())
    found = reference.train(
        [(model.known(model.symbols(word), {*alphabet}), count) for word, count in split_items],
        vocab_size=vocab_size,
        ties="id-min" if by_huggingface else ties,
        pair_counts=pair_counts,
        alphabet=alphabet,
        forbidden=forbidden,
        whole=whole,
        prefix=model.prefix.encode() if isinstance(model, WordPiece) else None,
        apart=apart,
        **limits,
    )
    if not model.byte_fallback:
        return found
    return found._replace(tokens=[*BYTE_TOKENS, *found.tokens[len(alphabet) :], *alphabet])


def learnt(tokenizer: Tokenizer) -> Learnt:
    """The same of a tokenizer that was trained."""
    training = training_of(tokenizer)
    pruned = training.pruned or {"first_affected_merge": None}
    specials = 0 if training.extends else len(tokenizer.special_tokens)
    tokens = [token for token in tokenizer.tokens[specials:] if token is not None]
    affected = pruned["first_affected_merge"]
    return reference.Learnt(list(training.merges), tokens, affected, training.tied or ())


def steps_of(training: Training) -> list[tuple[bytes, int]]:
    """The tokens that word training made, with their counts."""
    merges = [
        (float(number), merge.left + merge.right, merge.count)
        for number, merge in enumerate(training.merges)
    ]
    whole = [(word.merges_before - 0.5, word.token, word.count) for word in training.whole_words]
    return [(token, count) for _, token, count in sorted([*merges, *whole], key=lambda one: one[0])]


def learn_superwords(
    words: Tokenizer,
    runs: dict[tuple[int, ...], int],
    *,
    boundless: bool,
    most: int,
    **settings: Any,
) -> superwords.LearntSuperwords:
    """The superwords that ``bpe.reference`` learns from runs."""
    strings = [token for token in words.tokens if token is not None]
    return superwords.train(
        [(tuple(map(words.token_bytes, run)), count) for run, count in sorted(runs.items())],
        words=strings,
        start=strings[: training_of(words).initial_vocab] if boundless else strings,
        steps=steps_of(training_of(words)) if boundless else [],
        most=most,
        forbidden=tuple(token.encode() for token in words.special_tokens),
        **settings,
    )


def runs_of(run: SortedCounts, id_bytes: int) -> Counter[tuple[int, ...]]:
    """Counts whose keys are runs of ids."""
    table = counts_table(run)
    keys, counts = table["pretoken"].to_pylist(), table["count"].to_pylist()
    places = (range(0, len(key), id_bytes) for key in keys)
    runs = [
        tuple(int.from_bytes(key[at : at + id_bytes], "little") for at in starts)
        for key, starts in zip(keys, places, strict=True)
    ]
    return Counter(dict(zip(runs, counts, strict=True)))
