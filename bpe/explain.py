"""Explanations of encoding for people: merge steps, common roots, unreachable tokens, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import takewhile

from bpe.core_encoder import encoded_words
from bpe.errors import EncodingError
from bpe.formats.export_checks import first_few
from bpe.models import BYTE_TOKENS, CharacterLevel, WordPiece
from bpe.parts import Parts
from bpe.reference.encode import WordEncoder, runs
from bpe.reference.merge import MergeStep as MergeStep  # noqa: PLC0414 - callers name it
from bpe.reference.merge import apply_merges, merge_steps

_SHOWN = 8  # special tokens, and merges at either end


class Explainer:
    """Explains how pre-tokens become tokens; see :meth:`bpe.Tokenizer.explain`."""

    def __init__(self, parts: Parts) -> None:
        never = parts.superword_ids.union(parts.special_tokens.values())
        self._model = parts.model
        self._words = WordEncoder(
            tokens={token for token, id_ in parts.ids.items() if id_ not in never},
            ranks=parts.ranks(parts.merges),
            model=parts.model,
            ignore_merges=parts.ignore_merges,
            is_never_split=parts.pretokenizer.is_never_split,
        )

    def pieces(self, pretoken: bytes, *, clean: bool = False) -> list[bytes]:
        """Return the pieces of a merged pre-token; symbols without a token stay unchanged.

        Args:
            pretoken: the pre-token; WordPiece, which has no merges, returns its tokens.
            clean: leave out the end of the word.
        """
        if isinstance(self._model, WordPiece):
            pieces = [*self.steps(pretoken)[-1].symbols]
        else:
            pieces = [*apply_merges(self._model.symbols(pretoken), self._words.ranks)]
        if clean and pieces:
            pieces[-1] = pieces[-1].removesuffix(self._model.end_of_word.encode())
        return [piece for piece in pieces if piece]

    def steps(self, pretoken: bytes) -> list[MergeStep]:
        """Return the steps from single symbols to tokens."""
        return [*self._words.steps(pretoken)]


def superword_steps(parts: Parts, run: Sequence[bytes]) -> list[MergeStep]:
    """Return all steps from the tokens of a run to superwords.

    Raises:
        EncodingError: one is no token.
    """
    for token in run:
        if token not in parts.ids:
            raise EncodingError(f"{token!r:.60} is not a token: a run is of tokens")
    return [*merge_steps(tuple(run), parts.ranks(parts.superwords))]


def superword_runs(parts: Parts, pretokens: Iterable[bytes | None]) -> Iterator[list[bytes]]:
    """Yield the runs of pre-tokens in which superwords may be merged.

    Args:
        parts: the parts of a tokenizer, with or without superwords.
        pretokens: the pre-tokens of a text, in order; None where no superword may cross, such as
            at a special token.
    """
    of, explainer = parts.tokens.bytes_of, Explainer(parts)
    taken = {of(id_) for left, right, _ in parts.superwords for id_ in (left, right)}
    if not taken:
        return
    text = [*pretokens]
    words = [explainer.steps(pretoken)[-1].symbols if pretoken else () for pretoken in text]
    is_never_split = parts.pretokenizer.is_never_split
    never_split = [pretoken is not None and is_never_split(pretoken) for pretoken in text]
    for run in runs(words, of=taken, never_split=never_split):
        if len(run) > 1:
            yield [words[number][0] for number in run]


def unreachable(parts: Parts) -> list[int]:
    """Return the ids of ordinary tokens that no text has; see :meth:`Tokenizer.unreachable`."""
    model = parts.model
    others = parts.superword_ids.union(parts.cut_tokens.values())
    end = model.end_of_word.encode()
    is_never_split = parts.pretokenizer.is_never_split
    tokens = {
        id_: token
        for token, id_ in parts.ids.items()
        if id_ not in others
        and token != (model.unknown and model.unknown.encode())
        and not (token.endswith(end) and is_never_split(token.removesuffix(end)))
    }
    spelled = {token: bytes([byte]) for byte, token in enumerate(BYTE_TOKENS)}
    words = {
        id_: spelled.get(token, token) if model.byte_fallback else token
        for id_, token in tokens.items()
        if token != end
    }
    # A token with the end of a word is a word by itself. The others occur inside words, so they are
    # merged as words without an end.
    ended = {id_: word.removesuffix(end) for id_, word in words.items() if word.endswith(end)}
    inside = {id_: word for id_, word in words.items() if id_ not in ended}
    without_end = parts
    if isinstance(model, CharacterLevel):
        without_end = replace(parts, model=replace(model, end_of_word=""))
    unreached = [*_unreached(ended, parts), *_unreached(inside, without_end)]
    return sorted([*unreached, *_unreached_superwords(parts)])


def _unreached(words: Mapping[int, bytes], parts: Parts) -> list[int]:
    """Return the ids that the word of the same id, as one pre-token, does not encode to."""
    rows = encoded_words(parts, words.values()) if words else []
    return [id_ for id_, ids in zip(words, rows, strict=True) if ids != [id_]]


def _unreached_superwords(parts: Parts) -> list[int]:
    """Return the tokens of superwords that merging the tokens of their words does not give.

    A superword that several merges make is tried with the words of each.
    """
    of, alone = parts.tokens.bytes_of, parts.superword_ids
    ranks = parts.ranks(parts.superwords)
    words = dict[int, tuple[bytes, ...]]()  # of each superword that is reached
    by_size = sorted(parts.superwords, key=lambda merge: len(of(merge[2])))
    for left, right, result in by_size:  # parts are shorter than what they make
        first, second = (words.get(id_) if id_ in alone else (of(id_),) for id_ in (left, right))
        if result not in words and first is not None and second is not None:
            run = first + second
            if len(apply_merges(run, ranks)) == 1:
                words[result] = run
    return sorted(alone - words.keys())


def common_prefix(*lists: Sequence[str]) -> list[str]:
    """Return the strings with which all of the lists begin."""
    same = takewhile(lambda strings: len(set(strings)) == 1, zip(*lists, strict=False))
    return [strings[0] for strings in same]


def html_table(parts: Parts) -> str:
    """Return a tokenizer as an HTML table; everything that comes from it is escaped."""
    merges = [*parts.merges]
    special = [f"{token} ({id_})" for token, id_ in parts.special_tokens.items()]
    rows = {
        "vocabulary": f"{parts.size:,} tokens",
        "model": repr(parts.model),
        "pre-tokenizer": str(parts.pretokenizer),
        "special tokens": first_few(special, most=_SHOWN) or "none",
        "merges": f"{len(merges):,}",
    }
    if parts.superwords:
        rows["superwords"] = f"{len(parts.superwords):,}"
    of = parts.tokens.bytes_of
    first, last = merges[:_SHOWN], merges[_SHOWN:][-_SHOWN:]
    for name, some in (("first merges", first), ("last merges", last)):
        if some:
            pairs = (f"{visible(of(left))} + {visible(of(right))}" for left, right, _ in some)
            rows[name] = ", ".join(pairs)
    cells = (f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table><caption>bpe.Tokenizer</caption>{''.join(cells)}</table>"


SPACE = "␣"


def visible(data: bytes) -> str:
    r"""Bytes as printable text: a space as ␣, a byte that is not UTF-8 as \xNN."""
    return "".join(map(_character, data.decode("utf-8", "surrogateescape")))


def _character(char: str) -> str:
    if char == " ":
        return SPACE
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char if char.isprintable() else repr(char)[1:-1]
