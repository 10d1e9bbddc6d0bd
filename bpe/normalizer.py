"""Normalizers: steps that change a text before it is cut.

Steps are named and applied in order. All use Unicode 16.0: the normalization forms (Unicode
Standard Annex 15) come from the package ``unicodedata2``, the rest from tables of the core. The
core also finds the texts that a step does not change.

``nfc``, ``nfd``, ``nfkc`` and ``nfkd`` are Unicode's normalization forms. ``lowercase`` maps each
character by itself (no rule for a final sigma). ``strip-accents`` drops all marks (M), as Hugging
Face's ``StripAccents`` does; ``strip-nonspacing`` drops nonspacing marks (Mn), as BERT's tokenizer
does. After ``nfd``, both remove accents. ``clean-text`` and ``space-han`` are BERT's too: the first
drops control characters and turns whitespace into spaces, the second puts a space on either side
of Chinese characters.

The last four are SentencePiece's. ``mark-spaces`` turns spaces into U+2581, which decoding a model
of characters turns back. ``prepend-mark`` puts that mark before each text that is not empty;
``ensure-mark`` does unless the text begins with it, and ``ensure-first-mark`` not after a special
token either. Decoding then drops a space at the start.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import unicodedata2

from bpe._arrow import binary_rows, int64_array, text_column
from bpe._native import changed_rows, lowercase, strip_marks
from bpe.errors import PretokenizerError, listed
from bpe.names import NORMALIZERS as NORMALIZERS  # noqa: PLC0414 - callers name it

MARK = "\N{LOWER ONE EIGHTH BLOCK}"
PREPENDING = frozenset({"prepend-mark", "ensure-mark", "ensure-first-mark"})
"""The steps that put a mark before a text."""


def check_normalizer(steps: Iterable[str]) -> tuple[str, ...]:
    """Return the steps as a tuple.

    Raises:
        PretokenizerError: they are one str, or one is not in :data:`NORMALIZERS`.
    """
    checked = listed(steps, "the normalizer is", error=PretokenizerError)
    for step in checked:
        if step not in NORMALIZERS:
            raise PretokenizerError(f"unknown normalizer {step!r}; valid: {', '.join(NORMALIZERS)}")
    return checked


def normalize(text: bytes, steps: Sequence[str]) -> bytes:
    """Return a text after all steps; bytes that are not well-formed UTF-8 stay as they are."""
    if not steps:
        return text
    row = normalize_column(pa.array([text], pa.large_binary()), steps)[0]
    return row.as_buffer().to_pybytes()  # type: ignore[no-any-return]


def normalize_column(
    texts: pa.Array, steps: Sequence[str], *, first: pa.BooleanArray | None = None
) -> pa.Array:
    """Texts after all steps.

    Args:
        texts: string, large_string, binary or large_binary without nulls; bytes that are not
            well-formed UTF-8 stay as they are.
        steps: of :data:`NORMALIZERS`.
        first: whether each text precedes all special tokens; None if all do.

    Returns:
        The same array if no step can change anything, else large_binary of the same length.
    """
    for step in steps:
        texts = _after(step, texts, first)
    return texts


def _after(step: str, texts: pa.Array, first: pa.BooleanArray | None) -> pa.Array:
    """Texts after one step."""
    if step == "mark-spaces":
        return pc.replace_substring(texts.cast(pa.large_binary()), " ", MARK)
    if step in PREPENDING:
        return _prepended(texts.cast(pa.large_binary()), step, first)
    if step in _BY_CHARACTER:
        return _changed(texts, _BY_CHARACTER[step])
    column = text_column(texts)
    if step == "lowercase":
        return binary_rows(*lowercase(column))
    rows = int64_array(changed_rows(column, step))
    if not len(rows):
        return texts
    if step not in _FORMS:
        return binary_rows(*strip_marks(column, step))
    mask = pc.is_in(pa.array(range(len(texts)), pa.int64()), value_set=rows)
    changed = _changed(texts.take(rows), _FORMS[step])
    return pc.replace_with_mask(texts.cast(pa.large_binary()), mask, changed)


def before_marks(steps: Sequence[str]) -> Sequence[str]:
    """Return the steps before the last ones that Hugging Face's pre-tokenizer ``Metaspace`` does.

    >>> before_marks(["nfc", "mark-spaces", "ensure-mark"])
    ['nfc']
    """
    marks = len(steps) > 1 and steps[-2] == "mark-spaces" and steps[-1].startswith("ensure-")
    return steps[:-2] if marks else steps


def keeps_occurrences(content: str, steps: Collection[str]) -> bool:
    """Return whether normalizing surely keeps all occurrences of a string, and makes no new ones.

    Only of ``mark-spaces``, and of ``nfc`` if the string is ASCII.
    """
    if "mark-spaces" in steps and (" " in content or MARK in content):
        return False
    if not {"nfc", "mark-spaces"}.issuperset(steps):
        return False
    return "nfc" not in steps or (content.isascii() and not _COMPOSED.search(content))


# ASCII that NFC composes with a mark after it, or makes of another character.
_COMPOSED = re.compile(r"[A-Za-z<=>]\Z|[;K`]")


def _prepended(
    texts: pa.LargeBinaryArray, step: str, first: pa.BooleanArray | None
) -> pa.LargeBinaryArray:
    """Texts with a mark before those that a step puts one before."""
    mask = pc.greater(pc.binary_length(texts), 0)
    if step != "prepend-mark":
        mask = pc.and_(mask, pc.invert(pc.starts_with(texts, MARK)))
    if step == "ensure-first-mark" and first is not None:
        mask = pc.and_(mask, first)
    mark, nothing = (pa.scalar(data, pa.large_binary()) for data in (MARK.encode(), b""))
    return pc.binary_join_element_wise(pc.if_else(mask, mark, nothing), texts, nothing)


def _changed(texts: pa.Array, change: Callable[[str], str]) -> pa.LargeBinaryArray:
    """Texts changed one by one in Python."""
    return pa.array(
        [
            change(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            for text in texts.cast(pa.large_binary()).to_pylist()
        ],
        pa.large_binary(),
    )


class _Cleaned(dict[int, "str | None"]):
    """The table of ``clean-text`` for str.translate, filled on demand."""

    def __missing__(self, point: int) -> str | None:
        char = chr(point)
        cleaned: str | None = char
        if char in "\t\n\r" or unicodedata2.category(char).startswith("Z"):
            cleaned = " "
        elif char == "\ufffd" or unicodedata2.category(char) in ("Cc", "Cf", "Co"):
            cleaned = None  # unassigned characters stay; a malformed byte, a surrogate here, too
        self[point] = cleaned
        return cleaned


# "Chinese characters" of Google's BERT, tokenization.py: blocks of ideographs, as of Unicode 8.
HAN = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
_CLEANED = _Cleaned()
_HAN = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in HAN)}]")

_FORMS: dict[str, Callable[[str], str]] = {
    name: functools.partial(unicodedata2.normalize, name.upper())
    for name in ("nfc", "nfd", "nfkc", "nfkd")
}
_BY_CHARACTER: dict[str, Callable[[str], str]] = {
    "clean-text": lambda text: text.translate(_CLEANED),
    "space-han": functools.partial(_HAN.sub, r" \g<0> "),
}
