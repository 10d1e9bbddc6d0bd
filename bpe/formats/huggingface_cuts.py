"""The ``normalizer`` and ``pre_tokenizer`` of a tokenizer.json, as steps and names of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bpe.errors import InexpressibleError, PretokenizerError
from bpe.formats.strict_json import Entry, shorten
from bpe.normalizer import MARK, PREPENDING
from bpe.pretokenizer import PATTERNS, PRETOKENIZERS, Pretokenizer
from bpe.regex.oniguruma import from_huggingface, other_characters, to_huggingface
from bpe.regex.syntax import check_size

_MARK_SPACES = "mark-spaces"
_BERT_FLAGS = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
_BERT = {"type": "BertNormalizer", **dict.fromkeys(_BERT_FLAGS, False)}
_ENTRIES: Mapping[str, Mapping[str, Any]] = {
    "nfc": {"type": "NFC"},
    "nfd": {"type": "NFD"},
    "nfkc": {"type": "NFKC"},
    "nfkd": {"type": "NFKD"},
    "lowercase": {"type": "Lowercase"},
    "strip-accents": {"type": "StripAccents"},
    "strip-nonspacing": {"type": "Replace", "pattern": {"Regex": r"\p{Mn}"}, "content": ""},
    "clean-text": {**_BERT, "clean_text": True},
    "space-han": {**_BERT, "handle_chinese_chars": True},
    _MARK_SPACES: {"type": "Replace", "pattern": {"String": " "}, "content": MARK},
    "prepend-mark": {"type": "Prepend", "prepend": MARK},
}
# Those that are a type alone.
_TYPES = [entry["type"] for entry in _ENTRIES.values() if len(entry) == 1]

# Steps that only the pre-tokenizer Metaspace takes, by its prepend_scheme. Text is cut before each
# mark if its split is true.
_SCHEMES = {"ensure-mark": "always", "ensure-first-mark": "first"}
_AT_MARKS = f"{MARK}[^{MARK}]*"
_METASPACE_KEYS = ("type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split")


def write_normalizer(steps: Sequence[str]) -> dict[str, Any] | None:
    """Return the ``normalizer`` entry of steps, without those of :func:`write_pre_tokenizer`.

    Raises:
        InexpressibleError: there is no equivalent.
    """
    written = [_normalizer_step(step) for step in steps[: len(steps) - 2 * _ends_in_scheme(steps)]]
    if len(written) == 1:
        return written[0]
    return {"type": "Sequence", "normalizers": written} if written else None


def read_normalizer(entry: Entry) -> tuple[str, ...]:
    """Return the steps of a ``normalizer`` entry.

    They do the same but for characters that differ between versions of Unicode: ours is 16.0,
    ``tokenizers`` 0.23 has several, from 8 to 17 (docs/files.md, "Where ids can differ").

    Raises:
        TokenizerFileError: no steps do the same.
    """
    if entry.value is None:
        return ()
    kind = entry.object().get("type")
    if kind.value == "Sequence":
        entry.object("type", "normalizers")
        return tuple(
            step for item in entry.get("normalizers").items() for step in read_normalizer(item)
        )
    if kind.value == "BertNormalizer":
        return _read_bert(entry)
    steps = tuple(step for step, known in _ENTRIES.items() if entry.value == known)
    if not steps:
        if kind.value == "Prepend":
            kind.fail(f"Prepend is supported of {MARK} alone")
        if kind.string() in _TYPES:
            entry.object("type")  # it has something else, which this names
        kind.fail(
            f"the normalizer {shorten(kind.value)} is not supported; supported: Sequence, "
            f"BertNormalizer, {', '.join(_TYPES)}"
        )
    return steps


def _normalizer_step(step: str) -> dict[str, Any]:
    if step in _SCHEMES:
        raise InexpressibleError(
            f"{step} is supported there at the end of the normalizer, after mark-spaces"
        )
    return dict(_ENTRIES[step])


def _ends_in_scheme(steps: Sequence[str]) -> bool:
    """Return whether the last two steps are those of a Metaspace.

    Raises:
        InexpressibleError: the last one depends on where a normalized text begins.
    """
    if len(steps) > 2 and steps[-1] == "ensure-first-mark":
        raise InexpressibleError("ensure-first-mark after another normalizer is not sure there")
    return len(steps) > 1 and steps[-2] == _MARK_SPACES and steps[-1] in _SCHEMES


def _read_bert(entry: Entry) -> tuple[str, ...]:
    entry.object("type", *_BERT_FLAGS)
    clean, han, lowercase = (
        entry.get(flag).boolean(default=True)
        for flag in ("clean_text", "handle_chinese_chars", "lowercase")
    )
    # null: as lowercase.
    strip = entry.get("strip_accents").boolean(default=lowercase)
    steps = (["clean-text"] if clean else []) + (["space-han"] if han else [])
    steps += (["nfd", "strip-nonspacing"] if strip else []) + (["lowercase"] if lowercase else [])
    return tuple(steps)


# The pre-tokenizers by name: patterns of Oniguruma for a Split, or whole steps that do the same.
NAMED: Mapping[str, str | Mapping[str, Any]] = {
    **PATTERNS,
    # GPT-2's encoder.
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    # The end of the text as Oniguruma writes it, and without the possessive {1,3}+, after which
    # nothing could make it give back.
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s",
    "words": {"type": "WhitespaceSplit"},
    "spaces": {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "Removed",
        "invert": False,
    },
    "bert": {"type": "BertPreTokenizer"},
}
_STEPS = {name: step for name, step in NAMED.items() if not isinstance(step, str)}
_NAME_OF = {pattern: name for name, pattern in NAMED.items() if isinstance(pattern, str)}
# Punctuation as Hugging Face's Punctuation has it.
_PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
_SPECIAL = re.compile(r"[\\^$.\[\](){}?*+|]")
# Split patterns, inverted or not, that drop the same as a name.
_DROPPING = {
    (" ", False): "spaces",
    (r"\s+", False): "words",
    (r"\s", False): "words",
    (r"\S+", True): "words",
    (" +", False): "spaces",
    ("[^ ]+", True): "spaces",
}


def write_pre_tokenizer(pretokenizer: Pretokenizer, *, byte_level: bool) -> dict[str, Any] | None:
    """Return the ``pre_tokenizer`` entry, without the normalizer.

    Args:
        pretokenizer: what to write.
        byte_level: whether bytes are merged, which this entry decides.

    Raises:
        InexpressibleError: there is no equivalent, or the pattern may mean something else.
    """
    if pretokenizer.never_split:
        raise InexpressibleError(
            f"never_split {pretokenizer.never_split[0]!r} has no equivalent there"
        )
    names = pretokenizer.patterns or (str(pretokenizer.name),)
    gpt2_last = byte_level and names[-1] == "gpt2"
    cuts = []
    if _ends_in_scheme(pretokenizer.normalizer):
        at_marks = names[0] == _AT_MARKS
        scheme = _SCHEMES[pretokenizer.normalizer[-1]]
        cuts.append(_metaspace(scheme, split=at_marks))
        names = names[at_marks:]
        gpt2_last &= bool(names)
    cuts += [_cut_step(name) for name in (names[:-1] if gpt2_last else names) if name != "none"]
    if byte_level:
        cuts.append(byte_level_step(use_regex=gpt2_last))
    if len(cuts) > 1:
        return {"type": "Sequence", "pretokenizers": cuts}
    return cuts[0] if cuts else None


def _metaspace(scheme: str, *, split: bool) -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split}


def _cut_step(name: str) -> dict[str, Any]:
    """Return a named pre-tokenizer or a pattern as a step."""
    step = NAMED.get(name)
    if step is None:
        try:
            check_size(name)
            return split_step(to_huggingface(name))
        except ValueError as error:
            raise InexpressibleError(str(error)) from error
    return split_step(step) if isinstance(step, str) else dict(step)


def byte_level_step(*, use_regex: bool) -> dict[str, Any]:
    """Return the step that makes bytes of text, perhaps after GPT-2's cuts."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {**level, "use_regex": use_regex}


def split_step(regex: str) -> dict[str, Any]:
    """Return the step that isolates the matches of a pattern of Oniguruma."""
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def mixes_digits(token: bytes) -> bool:
    """Return whether the cuts of `Cuts.at_digits` would cut a token.

    Digits are the bytes whose characters in the byte alphabet are numbers: ``0`` to ``9``, and the
    last bytes of ``²`` and similar characters, which also occur in characters that are no numbers.
    """
    return 0 < sum(byte in _NUMERIC_BYTES for byte in token) < len(token)


# Steps of Falcon's file after ByteLevel, where text is already written in the byte alphabet.
_DIGITS = {"type": "Digits", "individual_digits": False}
_NUMERIC_BYTES = frozenset(b"0123456789\xb2\xb3\xb9\xbc\xbd\xbe")
_THREE_DIGITS = split_step("[0-9][0-9][0-9]")


class Cuts(NamedTuple):
    """The cuts of a ``pre_tokenizer`` entry.

    Attributes:
        steps: names and patterns, which cut one after the other.
        marks: the steps that a Metaspace at its beginning adds to the normalizer.
        in_bytes: whether it makes bytes of text, then cuts at digits at most.
        at_digits: whether it cuts these bytes at digits, which no token may cross.
    """

    steps: tuple[str, ...]
    marks: tuple[str, ...]
    in_bytes: bool
    at_digits: bool


def _marks(metaspace: Entry, normalizer: Sequence[str]) -> tuple[str, ...]:
    metaspace.object(*_METASPACE_KEYS)
    for name in ("replacement", "str_rep"):
        metaspace.get(name).must_be(MARK, *([None] if name == "str_rep" else []))
    scheme = metaspace.get("prepend_scheme")
    has_prefix = metaspace.get("add_prefix_space").boolean(default=True)
    scheme.must_be(*(("always", "first", None) if has_prefix else ()), "never")
    if scheme.value == "never":
        return (_MARK_SPACES,)
    if scheme.value == "first" and normalizer:
        scheme.fail(
            "first is not supported with a normalizer: Hugging Face's tokenizers ask where "
            "normalized text began"
        )
    return (_MARK_SPACES, "ensure-first-mark" if scheme.value == "first" else "ensure-mark")


def read_pre_tokenizer(entry: Entry, normalizer: Sequence[str]) -> Cuts:
    """Return the cuts of a ``pre_tokenizer`` entry.

    Args:
        entry: ``pre_tokenizer``.
        normalizer: the steps before it.

    Raises:
        TokenizerFileError: no steps do exactly the same.
    """
    cuts = _steps(entry)
    steps: list[str] = []
    marks: tuple[str, ...] = ()
    if cuts and cuts[0].get("type").value == "Metaspace":
        metaspace = cuts.pop(0)
        marks = _marks(metaspace, normalizer)
        steps += [_AT_MARKS] if metaspace.get("split").boolean(default=True) else []
    normalizer = (*normalizer, *marks)
    has_no_spaces = _MARK_SPACES in normalizer and PREPENDING.issuperset(
        normalizer[normalizer.index(_MARK_SPACES) + 1 :]
    )
    end = len(cuts)
    while end and cuts[end - 1].value in (_DIGITS, _THREE_DIGITS):
        end -= 1
    in_bytes = end > 0 and cuts[end - 1].get("type").value == "ByteLevel"
    last = [cut for cut in cuts[end:] if not in_bytes or cut.value != _DIGITS]
    for number, cut in enumerate([*cuts[:end], *last], start=1):
        if has_no_spaces and cut.get("pattern").value == {"String": " "}:
            cut.object("type", "pattern", "behavior", "invert").get("type").must_be("Split")
            continue  # Gemma's: nothing to split at
        steps += _byte_level(cut) if in_bytes and number == end else [_cut(cut)]
    at_digits = len(last) < len(cuts) - end
    return Cuts(tuple(steps) or ("none",), marks, in_bytes, at_digits)


def _byte_level(entry: Entry) -> tuple[str, ...]:
    entry.object("type", "add_prefix_space", "trim_offsets", "use_regex")
    if entry.get("add_prefix_space").boolean(default=True):
        entry.get("add_prefix_space").fail(
            "true is not supported: it adds a space before the text, so decoding would not give "
            "the text back"
        )
    return ("gpt2",) if entry.get("use_regex").boolean(default=True) else ()


def _steps(entry: Entry) -> list[Entry]:
    """Return the steps in order, with sequences flattened."""
    if entry.value is None:
        return []
    kind = entry.object().get("type")
    if kind.string() != "Sequence":
        return [entry]
    entry.object("type", "pretokenizers")
    return [step for item in entry.get("pretokenizers").items() for step in _steps(item)]


def _cut(entry: Entry) -> str:
    kind = entry.get("type")
    for name, step in _STEPS.items():
        if kind.value == step["type"] != "Split":
            entry.object(*step)
            return name
    if kind.value == "Metaspace":
        kind.fail("Metaspace is supported as the first pre-tokenizer alone")
    if kind.value == "Digits":
        entry.object("type", "individual_digits")
        return r"\p{N}" if entry.get("individual_digits").boolean(default=False) else r"\p{N}+"
    if kind.value == "Punctuation":
        entry.object("type", "behavior")
        return _joined(_PUNCTUATION, entry.get("behavior"))
    if kind.value != "Split":
        kind.fail(f"the pre-tokenizer {shorten(kind.value)} is not supported")
    return _split(entry)


def _joined(pattern: str, behavior: Entry) -> str:
    """Return the pattern whose matches are the pieces of a behaviour, with the text between them.

    Args:
        pattern: a pattern of ``regex``; for behaviours other than Isolated, one that matches single
            characters.
        behavior: the entry that says what becomes of the matches.

    Raises:
        TokenizerFileError: no pattern does exactly the same.
    """
    behavior.must_be("Isolated", *_JOINED)
    if behavior.value == "Isolated":
        return pattern
    others = other_characters(pattern)
    if others is None:
        behavior.fail(
            f"{behavior.value} is supported if the pattern is a character or a class of them; it "
            f"is {pattern!r}"
        )
    return _JOINED[behavior.string()].format(match=pattern, other=others)


# Of adjacent matches, only one is joined with text, before or after them.
_JOINED = {
    "Contiguous": "{match}+",
    "MergedWithNext": "{match}{other}*",
    "MergedWithPrevious": "{other}*{match}|{other}+",
}


def _split(entry: Entry) -> str:
    entry.object("type", "pattern", "behavior", "invert")
    pattern = entry.get("pattern").object("Regex", "String")
    if len(pattern.value) != 1:
        pattern.fail("expected either Regex or String")
    (kind,) = pattern.value
    pattern = pattern.get(kind)
    regex = pattern.string()
    if kind == "String":
        regex = _SPECIAL.sub(r"\\\g<0>", regex)
    removed, inverted = entry.get("behavior"), entry.get("invert").boolean()
    known = _NAME_OF.get(regex)
    if removed.value == "Removed":
        # Nothing is between the matches of a pattern that covers all text.
        if known and inverted:
            return known
        if (regex, inverted) in _DROPPING:
            return _DROPPING[regex, inverted]
    if inverted:
        # Isolating the matches or the text between them gives the same pieces.
        removed.must_be("Isolated")
    if known and removed.value == "Isolated":
        return known
    try:
        check_size(regex)
        ours = _joined(from_huggingface(regex), removed)
        Pretokenizer(pattern=ours)
    except (ValueError, PretokenizerError) as error:
        pattern.fail(str(error))
    return f"(?:{ours})" if ours in PRETOKENIZERS else ours  # a word that is a name here
