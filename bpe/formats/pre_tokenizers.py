"""The ``pre_tokenizer`` of a tokenizer.json and what it is called here."""

from __future__ import annotations

from typing import Any

from bpe.errors import PretokenizerError, TokenizerError
from bpe.formats.patterns import (
    HUGGINGFACE_PATTERNS,
    KNOWN_PATTERNS,
    from_huggingface,
    to_huggingface,
)
from bpe.formats.strict_json import Entry, shorten
from bpe.pretokenize import Pretokenizer

_SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}


def write_pre_tokenizer(pretokenizer: Pretokenizer) -> dict[str, Any]:
    """A pre-tokenizer as tokenizer.json says it.

    Raises:
        TokenizerError: it cannot be said there, or its pattern may mean something else there.
    """
    if (
        pretokenizer.normalizer
        or pretokenizer.never_split
        or isinstance(pretokenizer.pattern, tuple)
    ):
        raise TokenizerError(f"tokenizer.json cannot hold this pre-tokenizer: {pretokenizer}")
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": pretokenizer.name == "gpt2",
    }
    if pretokenizer.name in ("gpt2", "none"):
        return byte_level
    if pretokenizer.name == "words":
        cut: dict[str, Any] = {"type": "WhitespaceSplit"}
    elif pretokenizer.name == "spaces":
        cut = dict(_SPACES)
    else:
        cut = {
            "type": "Split",
            "pattern": {"Regex": _regex(pretokenizer)},
            "behavior": "Isolated",
            "invert": False,
        }
    return {"type": "Sequence", "pretokenizers": [cut, byte_level]}


def _regex(pretokenizer: Pretokenizer) -> str:
    if not isinstance(pretokenizer.pattern, str):
        return HUGGINGFACE_PATTERNS[pretokenizer.scheme]
    try:
        return to_huggingface(pretokenizer.pattern)
    except ValueError as error:
        raise TokenizerError(
            f"tokenizer.json cannot hold this pre-tokenizer: {error}; write the pattern without it"
        ) from error


def read_pre_tokenizer(entry: Entry) -> Pretokenizer:
    """The pre-tokenizer that cuts text as a ``pre_tokenizer`` entry says.

    Raises:
        TokenizerFileError: there is none that does exactly that.
    """
    steps = _steps(entry)
    if not steps or steps[-1].get("type").value != "ByteLevel":
        entry.fail(
            f"{shorten(entry.value)} does not end in ByteLevel; only byte-level tokenizers are "
            "supported"
        )
    *cuts, byte_level = steps
    byte_level.object("type", "add_prefix_space", "trim_offsets", "use_regex")
    if byte_level.get("add_prefix_space").boolean(default=True):
        byte_level.get("add_prefix_space").fail(
            "true is not supported: it puts a space before the text, so that decoding does not "
            "give the text back"
        )
    splits = byte_level.get("use_regex").boolean(default=True)
    if len(cuts) + splits > 1:
        entry.fail(f"{len(cuts) + splits} ways to cut the text, one after the other: at most one")
    if splits:
        return Pretokenizer("gpt2")
    if not cuts:
        return Pretokenizer("none")
    return _cut(cuts[0])


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


def _cut(entry: Entry) -> Pretokenizer:
    kind = entry.get("type")
    if kind.value == "WhitespaceSplit":
        entry.object("type")
        return Pretokenizer("words")
    if kind.value != "Split":
        kind.fail(f"the pre-tokenizer {shorten(kind.value)} is not supported")
    entry.object("type", "pattern", "behavior", "invert")
    if entry.value == _SPACES:
        return Pretokenizer("spaces")
    pattern = entry.get("pattern").object("Regex").get("Regex")
    regex = pattern.string()
    name = KNOWN_PATTERNS.get(regex)
    removed, inverted = entry.get("behavior"), entry.get("invert")
    # Dropping what is between the matches keeps all of a text that the pattern covers.
    if name and removed.value == "Removed" and inverted.boolean():
        return Pretokenizer(name)
    removed.must_be("Isolated")
    # Cutting off the matches or what lies between them leaves the same pieces.
    inverted.boolean()
    if name:
        return Pretokenizer(name)
    try:
        return Pretokenizer(pattern=from_huggingface(regex))
    except (ValueError, PretokenizerError) as error:
        pattern.fail(str(error))
