"""Writes the tables of the core: ``bpe/native/text/{unicode,normalizer,lowercase}_tables.h``.

Pre-tokenizers and normalizers read one stated version of Unicode, whatever the Python that runs
them. Categories and decompositions come from the package ``unicodedata2`` of exactly that version;
lowercase letters, which it does not know, from a Python of that version (3.14)::

    pip install unicodedata2==16.0.0
    python3.14 scripts/generate_unicode_tables.py            # write the headers
    python3.14 scripts/generate_unicode_tables.py --check    # exit 1 if one differs

Another Python leaves the table of lowercase letters alone.
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import unicodedata2

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNICODE_VERSION = "16.0.0"
NATIVE = Path(__file__).resolve().parents[1] / "bpe" / "native" / "text"

# Every code point has exactly one class, a bit of its own, so that a set of classes is a mask.
# Class names as the header spells them, and what belongs to each.
CLASSES = {
    "kUpper": "Lu, Lt: capital and title-case letters",
    "kLower": "Ll: small letters",
    "kCaseless": "Lm, Lo: modifier letters and letters without case",
    "kMark": "M: marks",
    "kNumber": "N: numbers",
    "kSpace": "White_Space other than CR and LF",
    "kNewline": "CR and LF",
    "kOther": "everything else: punctuation, symbols, controls, unassigned",
}
BITS = {name: 1 << bit for bit, name in enumerate(CLASSES)}

# What normalizers and the pre-tokenizer of BERT ask of a code point; any of these bits can be set.
FORMS = ("NFC", "NFD", "NFKC", "NFKD")
PROPERTIES = {
    "kNotNfc": "a text without such is in NFC (UAX 15: Quick_Check other than Yes, or a "
    "combining class)",
    "kNotNfd": "the same for NFD",
    "kNotNfkc": "the same for NFKC",
    "kNotNfkd": "the same for NFKD",
    "kAccent": "M: marks",
    "kNonspacing": "Mn: marks that take no room",
    "kPunctuation": "P, and what is neither letter nor digit in ASCII",
    "kWord": r"\w of UTS 18: letters, marks, digits, connectors, and other alphabetic ones",
}
PROPERTY_BITS = {name: 1 << bit for bit, name in enumerate(PROPERTIES)}

# Code points in a block: of the powers of two, 128 makes the smallest tables (38 KB).
BLOCK = 128
CODE_POINTS = 0x110000

# Of \w, what no category says: Join_Control, and symbols that are Alphabetic (both are in
# PropList.txt).
WORD_SYMBOLS = frozenset(
    point
    for first, last in (
        *((0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149)),
        *((0x1F150, 0x1F169), (0x1F170, 0x1F189)),
    )
    for point in range(first, last + 1)
)


def class_of(code_point: int, category: str) -> int:
    """The class bit of a code point.

    White_Space (PropList.txt) is the separators Zs, Zl, Zp and the controls U+0009 to U+000D and
    U+0085; ``unicodedata`` has no such property (``str.isspace`` holds U+001C to U+001F too).

    Args:
        code_point: the code point.
        category: its General_Category, such as ``Lu``.
    """
    if code_point in (0x0A, 0x0D):
        return BITS["kNewline"]
    if category[0] == "Z" or 0x09 <= code_point <= 0x0D or code_point == 0x85:
        return BITS["kSpace"]
    if category in ("Lu", "Lt"):
        return BITS["kUpper"]
    if category == "Ll":
        return BITS["kLower"]
    by_first_letter = {"L": "kCaseless", "M": "kMark", "N": "kNumber"}
    return BITS[by_first_letter.get(category[0], "kOther")]


def class_table() -> bytes:
    """The class bit of every code point, in order."""
    return bytes(class_of(point, unicodedata2.category(chr(point))) for point in range(CODE_POINTS))


def property_table() -> bytes:
    """The properties of every code point, in order."""
    # What can become one character with the one before it: the second halves of canonical
    # decompositions that are composed again, and Hangul vowels and trailing consonants.
    seconds = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    for point in range(CODE_POINTS):
        parts = unicodedata2.decomposition(chr(point)).split()
        composed = unicodedata2.normalize("NFC", chr(point)) == chr(point)
        if len(parts) == 2 and not parts[0].startswith("<") and composed:
            seconds.add(int(parts[1], 16))
    return bytes(_properties(point, seconds) for point in range(CODE_POINTS))


def _properties(point: int, seconds: set[int]) -> int:
    char, bits = chr(point), 0
    for bit, form in enumerate(FORMS):
        composes = form.endswith("C") and point in seconds
        if composes or unicodedata2.combining(char) or unicodedata2.normalize(form, char) != char:
            bits |= 1 << bit
    category = unicodedata2.category(char)
    if category[0] == "M":
        bits |= PROPERTY_BITS["kAccent"]
    if category == "Mn":
        bits |= PROPERTY_BITS["kNonspacing"]
    if category[0] == "P" or (0x21 <= point < 0x7F and not char.isalnum()):
        bits |= PROPERTY_BITS["kPunctuation"]
    if category[0] in "LM" or category in ("Nd", "Nl", "Pc") or point in WORD_SYMBOLS:
        bits |= PROPERTY_BITS["kWord"]
    return bits


def lowercase_distances() -> list[int]:
    """The distance of every code point to its lowercase letter; 0 for most.

    U+0130 alone becomes two code points (SpecialCasing.txt, without conditions); the core knows.
    """
    return [ord(chr(point).lower()[0]) - point for point in range(CODE_POINTS)]


def two_stages(values: Sequence[int]) -> tuple[list[int], list[int]]:
    """The number of the block of every 128 code points, and the distinct blocks in first use.

    Raises:
        SystemExit: there are too many blocks to number them in a byte.
    """
    numbers: dict[tuple[int, ...], int] = {}
    first = [
        numbers.setdefault(tuple(values[start : start + BLOCK]), len(numbers))
        for start in range(0, len(values), BLOCK)
    ]
    if len(numbers) > 256:
        sys.exit(f"{len(numbers)} distinct blocks do not fit in a byte; choose another BLOCK")
    return first, [value for block in numbers for value in block]


def array(declaration: str, values: list[int]) -> list[str]:
    """The lines of a C++ array, as many numbers in a line as fit in 100 columns."""
    lines, line = [f"inline constexpr {declaration}[{len(values)}] = {{"], "  "
    for value in values:
        number = f"{value},"
        if len(line) + len(number) > 100:
            lines.append(line)
            line = "  "
        line += number
    return [*lines, line, "};"]


def header(body: Iterable[str]) -> str:
    """The text of a header."""
    lines = [
        "// Made by scripts/generate_unicode_tables.py; do not edit.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "// clang-format off",
        "namespace bpe {",
        "",
        *body,
        "",
        "}  // namespace bpe",
        "// clang-format on",
    ]
    return "\n".join(lines) + "\n"


def bit_names(meanings: dict[str, str]) -> list[str]:
    """A constant for each bit."""
    return [
        f"inline constexpr uint8_t {name} = {1 << bit};  // {meaning}"
        for bit, (name, meaning) in enumerate(meanings.items())
    ]


def table(what: str, kind: str, names: tuple[str, str], values: Sequence[int]) -> list[str]:
    """A table of all code points in two stages, and how to read it."""
    first, blocks = two_stages(values)
    place = f"{names[0]}[c / {BLOCK}] * {BLOCK} + c % {BLOCK}"
    return [
        "",
        f"// {what} of code point c is {names[1]}[{place}].",
        *array(f"uint8_t {names[0]}", first),
        *array(f"{kind} {names[1]}", blocks),
    ]


def headers() -> dict[str, str]:
    """The texts of the headers by name; all but one if this Python has another Unicode."""
    version = f'inline constexpr char kUnicodeVersion[] = "{UNICODE_VERSION}";'
    classes = table("The class", "uint8_t", ("kBlocks", "kClasses"), class_table())
    names = ("kPropertyBlocks", "kProperties")
    properties = table("The set of properties", "uint8_t", names, property_table())
    texts = {
        "unicode_tables.h": header([version, "", *bit_names(CLASSES), *classes]),
        "normalizer_tables.h": header([*bit_names(PROPERTIES), *properties]),
    }
    if unicodedata.unidata_version == UNICODE_VERSION:
        names = ("kLowercaseBlocks", "kLowercase")
        distances = lowercase_distances()
        lines = table("The distance to the lowercase letter", "int32_t", names, distances)
        texts["lowercase_tables.h"] = header(lines[1:])
    return texts


def main() -> None:
    """Write the headers, or with ``--check`` compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="exit 1 if a header would change")
    arguments = parser.parse_args()
    if unicodedata2.unidata_version != UNICODE_VERSION:
        sys.exit(
            f"unicodedata2 has Unicode {unicodedata2.unidata_version}, not {UNICODE_VERSION}; "
            f"install it with: pip install unicodedata2=={UNICODE_VERSION}"
        )
    for name, text in headers().items():
        path = NATIVE / name
        if not arguments.check:
            path.write_text(text, encoding="ascii")
        elif path.read_text(encoding="ascii") != text:
            sys.exit(f"{path} is not what this script makes; run it without --check")


if __name__ == "__main__":
    main()
