r"""Superwords in Hugging Face's tokenizer.json: exactly, or in the form that SuperBPE publishes.

There, one list of merges is applied to each pre-token, so superwords need a pre-tokenizer that does
not cut where they merge. Superwords merge pre-tokens that are one token each, and these tokens are
a finite list. A pattern can therefore take runs of just those words as one pre-token, and cut the
rest as before::

    (?>(?: of| the)(?!\p{L}))++|PATTERN

This gives the same ids if the pre-tokenizer ends words in a known way, and if no merge of words
crosses their ends, which :func:`exact_pattern` checks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NoReturn

import regex

from bpe.core_encoder import encoded_words, make_encoder
from bpe.errors import InexpressibleError, TokenizerError
from bpe.formats.huggingface_cuts import NAMED, byte_level_step, split_step
from bpe.formats.strict_json import Entry
from bpe.normalizer import PREPENDING
from bpe.parts import Merges, Parts
from bpe.pretokenizer import Pretokenizer

PUBLISHED = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)"
"""The cut of SuperBPE's published tokenizers in their second phase (arXiv 2503.13423)."""

# Bounds of the work, which a file that is read may ask for.
_MOST_PAIRS = 1 << 20
_MOST_BYTES = 1 << 20  # of all words
_LONGEST = 64  # characters of a word: the pattern nests as deeply
_MOST_ALTERNATIVES = 4  # of a pattern, tried one after the other

# How words, the pre-tokens with letters, end. A word of o200k is letters of two classes, those that
# may begin it and those that may end it, and a contraction. In the others, contractions are words
# by themselves, whatever follows, and every other word ends where letters do.
_O200K = "o200k"
_FIRST = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LAST = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_ANY_CASE = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BEGUN_CONTRACTION = "(?i:'(?:s|t|re?|ve?|m|ll?|d))"
_CONTRACTION: Mapping[str, str] = {
    "gpt2": "'(?:[sdmt]|ll|ve|re)",
    "cl100k": _ANY_CASE,
    "llama3": _ANY_CASE,
    "qwen2": _ANY_CASE,
    _O200K: _ANY_CASE,
}


def approximate(parts: Parts) -> Parts:
    """Return a tokenizer with the same tokens whose superwords are ordinary merges (SuperBPE).

    Its pre-tokenizer hardly cuts, so it also merges what is no pre-token by itself, and cuts
    between signs where this one does not: some ids differ.

    Raises:
        TokenizerError: the tokenizer has no superwords.
    """
    if not parts.superwords:
        raise TokenizerError("the tokenizer has no superwords: save it without approximate")
    cut = parts.pretokenizer
    return replace(
        parts,
        merges=joined_merges(parts),
        superwords=Merges(),
        pretokenizer=Pretokenizer(
            pattern=PUBLISHED, normalizer=cut.normalizer, never_split=cut.never_split
        ),
        training=None,
    )


def joined_merges(parts: Parts) -> Merges:
    """Return the merges of words, then those of superwords whose pairs words do not merge."""
    of_words = {merge[:2] for merge in parts.merges}
    across = (merge for merge in parts.superwords if merge[:2] not in of_words)
    return Merges.of([*parts.merges, *across])


def exact_pattern(parts: Parts) -> str:
    """Return the pattern under which all merges in one list give exactly the ids of a tokenizer.

    1. Where a pre-token begins, the pattern takes a listed word if and only if the pre-tokenizer
       does: what follows it is checked. So all else is cut as before, and runs are the same.
    2. In a run, no merge of words crosses the end of a word: the first that did would also cross
       it in a text of the two words, and all pairs that can follow each other are tried. Where one
       is crossed, the pattern ends the run, and no superword is merged there. So each word becomes
       its token, and superwords are merged by their ranks.
    3. In any other pre-token, no superword is merged: the pre-tokenizer never leaves its two parts
       in one.

    Raises:
        InexpressibleError: one of these conditions may not hold.
    """
    cut = parts.pretokenizer
    if cut.never_split:
        _fail(parts, "no text is kept from being split (never_split)")
    if cut.name not in _CONTRACTION:
        _fail(parts, f"the pre-tokenizer is one of {', '.join(_CONTRACTION)}")
    if parts.ignore_merges:
        _fail(parts, "no pre-token is looked up as a token (ignore_merges)")
    if not PREPENDING.isdisjoint(cut.normalizer):
        _fail(parts, "the normalizer adds nothing before a text")
    name = str(cut.name)
    words = _words(parts, name)
    _check_inside(parts, name)
    return _pattern(name, words, _stops(parts, name, words))


def _fail(parts: Parts, condition: str) -> NoReturn:
    raise InexpressibleError(
        f"its {len(parts.superwords):,} superwords merge pre-tokens that are one token each, "
        f"which is exact there only if {condition}"
    )


def _words(parts: Parts, name: str) -> dict[str, int]:
    """Return the pre-tokens that superwords consist of, with their ids.

    Raises:
        InexpressibleError: a pre-token is no word that the pre-tokenizer gives.
    """
    alone = parts.superword_ids
    for _, _, result in parts.superwords:
        if result not in alone:
            token = parts.tokens.bytes_of(result)
            _fail(parts, f"no merge of words makes a superword, and one makes {token!r}")
    ids = sorted({id_ for *pair, _ in parts.superwords for id_ in pair} - alone)
    if sum(len(parts.tokens.bytes_of(id_)) for id_ in ids) > _MOST_BYTES:
        _fail(parts, f"their words have {_MOST_BYTES:,} bytes together at most")
    cut = Pretokenizer(name)
    words: dict[str, int] = {}
    for id_ in ids:
        token = parts.tokens.bytes_of(id_)
        word = token.decode("utf-8", "replace")
        is_word = (
            word.encode() == token
            and len(word) <= _LONGEST
            and regex.search(r"\p{L}", word)
            and "'\u017f" not in word  # an s, where case is ignored: not sure
            and cut.split(token) == [token]
        )
        if not is_word:
            _fail(parts, f"they merge words with letters alone, and one merges {token!r}")
        words[word] = id_
    for (word, id_), ids in zip(words.items(), _merged(parts, words), strict=True):
        if ids != [id_]:
            _fail(parts, f"each word is one token, and {word!r} is not")
    return words


def _merged(parts: Parts, texts: Iterable[str]) -> list[list[int]]:
    """Return the ids of texts, each as one pre-token, by the merges of words."""
    words = Parts(tokens=parts.tokens, merges=parts.merges, pretokenizer=Pretokenizer("none"))
    return encoded_words(words, (text.encode() for text in texts))


def _not_followed_by(name: str, word: str) -> str:
    """Return the lookahead after a word with which the word is a pre-token.

    The word has to begin where a pre-token does.
    """
    contraction = _CONTRACTION[name]
    if _ends_in_contraction(name, word):
        return ""
    if name != _O200K:
        return r"(?!\p{L})"
    if regex.search(r"\p{Ll}", word):  # after it, only letters that may end a word
        return f"(?![{_LAST}]|{contraction})"
    if regex.search(f"[{_LAST}]", word):  # they may all begin one that goes on
        return f"(?![{_FIRST}]*[{_LAST}]|{contraction})"
    return f"(?![{_FIRST}{_LAST}]|{contraction})"


def _ends_in_contraction(name: str, text: str) -> bool:
    before = f"[{_FIRST}{_LAST}]" if name == _O200K else ""
    return regex.search(f"{before}{_CONTRACTION[name]}\\Z", text) is not None


def _check_inside(parts: Parts, name: str) -> None:
    """Check that no parts of superwords may follow each other inside one pre-token."""
    for left, right, _ in parts.superwords:
        first, second = (parts.tokens.bytes_of(id_).decode() for id_ in (left, right))
        if not (_ends_in_contraction(name, first) or _is_cut_between(name, first, second)):
            _fail(
                parts,
                f"no pre-token holds both parts of one, and one may hold {first!r} and {second!r}",
            )


def _is_cut_between(name: str, first: str, second: str) -> bool:
    """Return whether the second part always begins a pre-token after the first.

    A pre-token with letters has one other character at most, which begins it. In o200k, marks are
    letters too, no word goes on in upper case after lower case, and a word may end in a
    contraction. There, case is ignored, and its characters may be those of two tokens.
    """
    if name != _O200K:
        return regex.match(r"\P{L}", second) is not None
    if regex.match(r"[^\p{L}\p{M}]", second):
        return regex.fullmatch(_BEGUN_CONTRACTION, second) is None
    changes_case = regex.search(r"\p{Ll}\Z", first) and regex.match(r"[\p{Lu}\p{Lt}]", second)
    after_apostrophe = first.rpartition("'")[2] + second  # the apostrophe may be another token
    return bool(changes_case) and after_apostrophe not in ("rE", "vE", "lL")


def _stops(parts: Parts, name: str, words: Mapping[str, int]) -> dict[str, str]:
    """Return the characters that end a run after each word, as a merge of words may join them.

    Raises:
        InexpressibleError: superwords merge such a character after the word.
    """
    joined = _joined_by_words(parts, name, words)
    following = _followers(parts, words)
    stops: dict[str, str] = {}
    for first, seconds in joined:
        chars = {word[0] for word in seconds}
        for word in following[first]:
            if word[0] in chars:
                what = f"{first!r} and {word!r}"
                _fail(parts, f"no merge of words can join two words of one, as it can {what}")
        stops[first] = "".join(sorted(chars))
    return stops


def _joined_by_words(
    parts: Parts, name: str, words: Mapping[str, int]
) -> Iterator[tuple[str, set[str]]]:
    """Return the words that merges of words join with one that may follow in a run, and these."""
    ends = {word: _not_followed_by(name, word) for word in words}
    ending: dict[tuple[str, bytes], list[str]] = defaultdict(list)
    beginning: dict[tuple[str, bytes], list[str]] = defaultdict(list)
    for word in words:
        data = word.encode()
        for begin in range(len(data)):
            ending[ends[word], data[begin:]].append(word)
    lookaheads = sorted(set(ends.values()))
    for end in lookaheads:
        for word in filter(regex.compile(end).match, words):
            data = word.encode()
            for stop in range(1, len(data) + 1):
                beginning[end, data[:stop]].append(word)
    of = parts.tokens.bytes_of
    pairs: dict[tuple[str, str], None] = {}
    tried = 0
    for left, right, _ in parts.merges:
        for end in lookaheads:
            firsts, seconds = ending.get((end, of(left)), ()), beginning.get((end, of(right)), ())
            tried += len(firsts) * len(seconds)
            if tried > _MOST_PAIRS:
                _fail(parts, "merges of words concern few pairs of its words, not millions")
            pairs |= dict.fromkeys(product(firsts, seconds))
    merged = _merged(parts, (first + second for first, second in pairs))
    joined: dict[str, set[str]] = defaultdict(set)
    for (first, second), ids in zip(pairs, merged, strict=True):
        if ids != [words[first], words[second]]:
            joined[first].add(second)
    return iter(joined.items())


def _followers(parts: Parts, words: Mapping[str, int]) -> dict[str, set[str]]:
    """Return the words that superwords merge after each word."""
    first = {id_: {word} for word, id_ in words.items()}
    last = {id_: {word} for word, id_ in words.items()}
    following: dict[str, set[str]] = {word: set() for word in words}
    superwords = sorted(parts.superwords, key=lambda one: len(parts.tokens.bytes_of(one[2])))
    for left, right, result in superwords:  # the parts of a superword come before it
        for word in last[left]:
            following[word] |= first[right]
        first[result] = first.get(result, set()) | first[left]
        last[result] = last.get(result, set()) | last[right]
    return following


def _pattern(name: str, words: Iterable[str], stops: Mapping[str, str]) -> str:
    """Return the pattern of runs of words, and that of a name after it."""
    groups: dict[str, list[str]] = defaultdict(list)
    last: dict[str, list[str]] = defaultdict(list)
    for word in sorted(words):
        end = _not_followed_by(name, word)
        if word in stops:
            last[end].append(word)
            end += f"(?![{''.join(map(_literal, stops[word]))}])"
        groups[end].append(word)
    ends_run = f"(?:{_listed(last)})?" if last else ""
    return f"(?>{_listed(groups)})++{ends_run}|{NAMED[name]}"


def _listed(groups: Mapping[str, Sequence[str]]) -> str:
    """Return a pattern of words, grouped by the lookahead that follows them."""
    return "|".join(f"(?:{_one_of(words)}){end}" for end, words in sorted(groups.items()))


def _one_of(words: Sequence[str]) -> str:
    """Return a pattern of words that writes common beginnings once and tries the longest first.

    Args:
        words: sorted, each once.
    """
    branches: dict[str, list[str]] = defaultdict(list)
    for word in words:
        if word:
            branches[word[0]].append(word[1:])
    if not branches:
        return ""
    pattern = _branches({char: _one_of(ends) for char, ends in branches.items()})
    if words[0]:
        return pattern if len(branches) == 1 else f"(?:{pattern})"
    return f"(?:{pattern})?"


def _branches(ends: Mapping[str, str]) -> str:
    """Return a pattern of alternatives, each with its first character.

    Oniguruma tries them in order and gives up after 10,000,000 failures in a match, so a lookahead
    halves them while there are many.

    Args:
        ends: the pattern after each character, in the order of characters.
    """
    chars = list(ends)
    if len(chars) <= _MOST_ALTERNATIVES:
        return "|".join(_literal(char) + end for char, end in ends.items())
    half = len(chars) // 2
    lower, upper = ({char: ends[char] for char in part} for part in (chars[:half], chars[half:]))
    is_lower = f"(?=[{_literal(chars[0])}-{_literal(chars[half - 1])}])"
    return f"{is_lower}(?:{_branches(lower)})|{_branches(upper)}"


def _literal(char: str) -> str:
    if ord(char) < ord(" ") or char == "\x7f":
        return f"\\x{ord(char):02x}"
    return f"\\{char}" if char.isascii() and not char.isalnum() and char not in " _" else char


def write_pattern(pattern: str) -> dict[str, Any]:
    """Return the ``pre_tokenizer`` entry of :func:`exact_pattern`."""
    steps = [split_step(pattern), byte_level_step(use_regex=False)]
    return {"type": "Sequence", "pretokenizers": steps}


def read_pattern(entry: Entry) -> tuple[str, str] | None:
    """Return the name and the pattern of an entry that may be :func:`write_pattern`'s."""
    try:
        pattern = entry.value["pretokenizers"][0]["pattern"]["Regex"]
        if entry.value != write_pattern(pattern) or not pattern.startswith("(?>"):
            return None
    except (AttributeError, KeyError, IndexError, TypeError):
        return None
    names = (name for name in _CONTRACTION if pattern.endswith(f"|{NAMED[name]}"))
    name = next(names, None)
    return None if name is None else (name, pattern)


def read_superwords(parts: Parts, name: str, pattern: str) -> Parts | None:
    """Return a tokenizer whose file has :func:`exact_pattern`, with its superwords.

    The last merges are of superwords: the pre-tokenizer cuts what they make.

    Args:
        parts: with all merges in one list.
        name: of the pre-tokenizer.
        pattern: that of the file.

    Returns:
        None if the pattern is not that of such superwords, so that the file means something else.
    """
    cut = Pretokenizer(name)
    number = len(parts.merges)
    results = parts.merges.results
    while number and _is_cut(parts.tokens.bytes_of(results[number - 1]), cut):
        number -= 1
    exact = replace(
        parts,
        merges=parts.merges.first(number),
        superwords=Merges(parts.merges.flat[3 * number :]),
        pretokenizer=Pretokenizer(name, normalizer=parts.pretokenizer.normalizer),
    )
    try:
        make_encoder(exact)
        return exact if exact_pattern(exact) == pattern else None
    except TokenizerError:
        return None


def _is_cut(token: bytes, cut: Pretokenizer) -> bool:
    """Return whether a token is a text with letters that a pre-tokenizer cuts."""
    text = token.decode("utf-8", "replace")
    return (
        text.encode() == token
        and regex.search(r"\p{L}", text) is not None
        and len(cut.split(token)) > 1
    )
