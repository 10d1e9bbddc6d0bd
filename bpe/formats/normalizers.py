"""The ``normalizer`` of a tokenizer.json and the steps it consists of here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpe.formats.strict_json import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpe.formats.strict_json import Entry

_TYPES: Mapping[str, str] = {
    "nfc": "NFC",
    "nfd": "NFD",
    "nfkc": "NFKC",
    "nfkd": "NFKD",
    "lowercase": "Lowercase",
    "strip-accents": "StripAccents",
}
_STEPS = {type_: step for step, type_ in _TYPES.items()}
_NONSPACING = r"\p{Mn}"
_BERT_FLAGS = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
_BERT_STEPS = {"clean-text": {"clean_text": True}, "space-han": {"handle_chinese_chars": True}}


def write_normalizer(steps: Sequence[str]) -> dict[str, Any] | None:
    """The steps as tokenizer.json says them."""
    written = [_written(step) for step in steps]
    if len(written) == 1:
        return written[0]
    return {"type": "Sequence", "normalizers": written} if written else None


def read_normalizer(entry: Entry) -> tuple[str, ...]:
    """The steps that do what a ``normalizer`` entry says.

    Raises:
        TokenizerFileError: there are none that do exactly that.
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
    if entry.value == _written("strip-nonspacing"):
        return ("strip-nonspacing",)
    step = _STEPS.get(kind.string())
    if step is None:
        kind.fail(
            f"the normalizer {shorten(kind.value)} is not supported; supported: Sequence, "
            f"BertNormalizer, {', '.join(_STEPS)}"
        )
    entry.object("type")
    return (step,)


def _written(step: str) -> dict[str, Any]:
    if step == "strip-nonspacing":
        return {"type": "Replace", "pattern": {"Regex": _NONSPACING}, "content": ""}
    return _bert(**_BERT_STEPS[step]) if step in _BERT_STEPS else {"type": _TYPES[step]}


def _bert(**flags: bool) -> dict[str, Any]:
    """A BertNormalizer that does nothing but what the flags say."""
    off = dict.fromkeys(_BERT_FLAGS, False)
    return {"type": "BertNormalizer", **off, **flags}


def _read_bert(entry: Entry) -> tuple[str, ...]:
    entry.object("type", *_BERT_FLAGS)
    clean, han, lowercase = (
        entry.get(flag).boolean(default=True)
        for flag in ("clean_text", "handle_chinese_chars", "lowercase")
    )
    # Where it is null, accents go with the case.
    strip = entry.get("strip_accents").boolean(default=lowercase)
    steps = (["clean-text"] if clean else []) + (["space-han"] if han else [])
    steps += (["nfd", "strip-nonspacing"] if strip else []) + (["lowercase"] if lowercase else [])
    return tuple(steps)
