"""The ``pre_tokenizer`` of a tokenizer.json and what it is called here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bpe.errors import InexpressibleError, PretokenizerError
from bpe.formats.pattern_size import check_size
from bpe.formats.patterns import (
    HUGGINGFACE_PATTERNS,
    KNOWN_PATTERNS,
    from_huggingface,
    to_huggingface,
)
from bpe.formats.strict_json import Entry, shorten
from bpe.pretokenize import PRETOKENIZERS, Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}
# What Hugging Face's Punctuation takes for punctuation.
_PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
_SPECIAL = re.compile(r"[\\^$.\[\](){}?*+|]")
# Split patterns and what becomes of their matches, where the name drops the same.
_DROPPING = {
    (r"\s+", False): "words",
    (r"\s", False): "words",
    (r"\S+", True): "words",
    (" +", False): "spaces",
    ("[^ ]+", True): "spaces",
}


def write_pre_tokenizer(pretokenizer: Pretokenizer, *, byte_level: bool) -> dict[str, Any] | None:
    """How text is cut, as tokenizer.json says it; the normalizer stands elsewhere.

    Args:
        pretokenizer: what to write.
        byte_level: whether bytes of the text are merged, which is the pre-tokenizer's to say.

    Raises:
        InexpressibleError: it cannot be said there, or its pattern may mean something else there.
    """
    if pretokenizer.never_split:
        raise InexpressibleError(f"never_split {pretokenizer.never_split[0]!r} has no equal there")
    names: Sequence[str] = (pretokenizer.name or "",)
    if isinstance(pretokenizer.pattern, tuple):
        names = pretokenizer.pattern
    elif pretokenizer.pattern is not None:
        names = (pretokenizer.pattern,)
    gpt2_last = byte_level and names[-1] == "gpt2"
    cuts = [_written(name) for name in (names[:-1] if gpt2_last else names) if name != "none"]
    if byte_level:
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        cuts.append({**level, "use_regex": gpt2_last})
    if len(cuts) > 1:
        return {"type": "Sequence", "pretokenizers": cuts}
    return cuts[0] if cuts else None


def _written(name: str) -> dict[str, Any]:
    """A named pre-tokenizer or a pattern as a step."""
    if name == "words":
        return {"type": "WhitespaceSplit"}
    if name == "spaces":
        return dict(_SPACES)
    if name == "bert":
        return {"type": "BertPreTokenizer"}
    return {
        "type": "Split",
        "pattern": {"Regex": HUGGINGFACE_PATTERNS[name] if name in PRETOKENIZERS else _regex(name)},
        "behavior": "Isolated",
        "invert": False,
    }


def _regex(pattern: str) -> str:
    try:
        check_size(pattern)
        return to_huggingface(pattern)
    except ValueError as error:
        raise InexpressibleError(str(error)) from error


def ends_in_bytes(entry: Entry) -> bool:
    """Whether a ``pre_tokenizer`` entry makes bytes of the text, at its end."""
    steps = _steps(entry)
    return bool(steps) and steps[-1].get("type").value == "ByteLevel"


def read_pre_tokenizer(entry: Entry) -> tuple[str, ...]:
    """The names and patterns that cut text, one after the other, as a ``pre_tokenizer`` entry says.

    Raises:
        TokenizerFileError: there are none that do exactly that.
    """
    cuts = _steps(entry)
    steps: list[str] = []
    for cut in cuts:
        is_last = cut is cuts[-1]
        steps += _byte_level(cut) if is_last and ends_in_bytes(cut) else _cut(cut)
    return tuple(steps) or ("none",)


def _byte_level(entry: Entry) -> tuple[str, ...]:
    entry.object("type", "add_prefix_space", "trim_offsets", "use_regex")
    if entry.get("add_prefix_space").boolean(default=True):
        entry.get("add_prefix_space").fail(
            "true is not supported: it puts a space before the text, so that decoding does not "
            "give the text back"
        )
    return ("gpt2",) if entry.get("use_regex").boolean(default=True) else ()


def _steps(entry: Entry) -> list[Entry]:
    """The pre-tokenizers that run one after the other, sequences unfolded."""
    if entry.value is None:
        return []
    kind = entry.object().get("type")
    if kind.string() == "Metaspace":
        kind.fail(
            "Metaspace (SentencePiece, as in Llama 2) is not byte-level: its tokens are "
            "characters with a mark for the space, which this library cannot express"
        )
    if kind.value != "Sequence":
        return [entry]
    entry.object("type", "pretokenizers")
    return [step for item in entry.get("pretokenizers").items() for step in _steps(item)]


def _cut(entry: Entry) -> tuple[str, ...]:
    kind = entry.get("type")
    if kind.value == "WhitespaceSplit":
        entry.object("type")
        return ("words",)
    if kind.value == "BertPreTokenizer":
        entry.object("type")
        return ("bert",)
    if kind.value == "Digits":
        entry.object("type", "individual_digits")
        return (r"\p{N}" if entry.get("individual_digits").boolean(default=False) else r"\p{N}+",)
    if kind.value == "Punctuation":
        entry.object("type", "behavior")
        entry.get("behavior").must_be("Isolated", "Contiguous")
        several = "+" if entry.get("behavior").value == "Contiguous" else ""
        return (_PUNCTUATION + several,)
    if kind.value != "Split":
        kind.fail(f"the pre-tokenizer {shorten(kind.value)} is not supported")
    return (_split(entry),)


def _split(entry: Entry) -> str:
    entry.object("type", "pattern", "behavior", "invert")
    if entry.value == _SPACES:
        return "spaces"
    pattern = entry.get("pattern").object("Regex", "String")
    if len(pattern.value) != 1:
        pattern.fail("expected either Regex or String")
    literal = "String" in pattern.value
    pattern = pattern.get("String" if literal else "Regex")
    regex = pattern.string()
    if literal:
        regex = _SPECIAL.sub(r"\\\g<0>", regex)
    removed, inverted = entry.get("behavior"), entry.get("invert")
    name = None if literal else KNOWN_PATTERNS.get(regex)
    if removed.value == "Removed":
        # Dropping what is between the matches keeps all of a text that the pattern covers.
        if name and inverted.boolean():
            return name
        if not literal and (regex, inverted.boolean()) in _DROPPING:
            return _DROPPING[regex, inverted.boolean()]
    removed.must_be("Isolated")
    # Cutting off the matches or what lies between them leaves the same pieces.
    inverted.boolean()
    if name:
        return name
    try:
        check_size(regex)
        mine = from_huggingface(regex)
        Pretokenizer(pattern=mine)
    except (ValueError, PretokenizerError) as error:
        pattern.fail(str(error))
    if mine in PRETOKENIZERS:  # a word that is a name here
        return f"(?:{mine})"
    return mine
