"""Writes ``bpe/native/unicode_tables.h``: the class of every code point, for the scanners.

The pre-tokenizers read one stated version of Unicode, whatever the Python that runs them. The
categories come from the package ``unicodedata2`` of exactly that version::

    pip install unicodedata2==16.0.0
    python scripts/generate_unicode_tables.py            # write the header
    python scripts/generate_unicode_tables.py --check    # exit 1 if the header would change

Every code point has exactly one class, a bit of its own, so that a set of classes is a mask.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

UNICODE_VERSION = "16.0.0"
HEADER = Path(__file__).resolve().parents[1] / "bpe" / "native" / "unicode_tables.h"

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
BITS = {name: 1 << index for index, name in enumerate(CLASSES)}

# Code points in a block: of the powers of two, 128 makes the smallest tables (38 KB).
BLOCK = 128
CODE_POINTS = 0x110000


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
    """The class bit of every code point, in order.

    Raises:
        SystemExit: ``unicodedata2`` is missing or of another version.
    """
    remedy = f"install it with: pip install unicodedata2=={UNICODE_VERSION}"
    try:
        data = importlib.import_module("unicodedata2")
    except ModuleNotFoundError:
        sys.exit(f"the package unicodedata2 is missing; {remedy}")
    if data.unidata_version != UNICODE_VERSION:
        sys.exit(
            f"unicodedata2 has Unicode {data.unidata_version}, not {UNICODE_VERSION}; {remedy}"
        )
    return bytes(class_of(point, data.category(chr(point))) for point in range(CODE_POINTS))


def two_stages(table: bytes) -> tuple[list[int], list[bytes]]:
    """The number of the block of every 128 code points, and the distinct blocks in first use."""
    numbers: dict[bytes, int] = {}
    first = [
        numbers.setdefault(table[start : start + BLOCK], len(numbers))
        for start in range(0, len(table), BLOCK)
    ]
    return first, list(numbers)


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


def header() -> str:
    """The text of the header."""
    first, blocks = two_stages(class_table())
    if len(blocks) > 256:
        sys.exit(f"{len(blocks)} distinct blocks do not fit in a byte; choose another BLOCK")
    lines = [
        "// Made by scripts/generate_unicode_tables.py; do not edit.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "// clang-format off",
        "namespace bpe {",
        "",
        f'inline constexpr char kUnicodeVersion[] = "{UNICODE_VERSION}";',
        "",
        *(
            f"inline constexpr uint8_t {name} = {BITS[name]};  // {meaning}"
            for name, meaning in CLASSES.items()
        ),
        "",
        f"// The class of code point c is kClasses[kBlocks[c / {BLOCK}] * {BLOCK} + c % {BLOCK}].",
        *array("uint8_t kBlocks", first),
        *array("uint8_t kClasses", [value for block in blocks for value in block]),
        "",
        "}  // namespace bpe",
        "// clang-format on",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the header, or with ``--check`` compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="exit 1 if the header would change")
    check = parser.parse_args().check
    text = header()
    if not check:
        HEADER.write_text(text, encoding="ascii")
    elif HEADER.read_text(encoding="ascii") != text:
        sys.exit(f"{HEADER} is not what this script makes; run it without --check")


if __name__ == "__main__":
    main()
