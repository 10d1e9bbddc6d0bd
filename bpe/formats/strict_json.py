"""Untrusted JSON: every entry is checked when it is read, and errors name its place."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from bpe.errors import TokenizerFileError

MAX_FILE_BYTES = 1 << 30
_MAX_DEPTH = 32
_MAX_LENGTH = 20_000
_MAX_MESSAGE = 600


@dataclass(frozen=True)
class Entry:
    """A value in a JSON file, with the file and its place there for error messages."""

    file: str
    place: str
    value: Any

    def fail(self, what: str) -> NoReturn:
        """Raise TokenizerFileError with the file, this place and what is wrong."""
        place = self.place if len(self.place) <= 200 else f"{self.place[:200]}..."
        if len(what) > _MAX_MESSAGE:  # it holds a pattern that is as long
            what = f"{what[: _MAX_MESSAGE // 2]} ... {what[-_MAX_MESSAGE // 2 :]}"
        raise TokenizerFileError(f"{self.file}: {place or 'the file'}: {what}")

    def object(self, *keys: str) -> Entry:
        """Return this entry, an object with no other keys than these (with none given, any)."""
        if not isinstance(self.value, dict):
            self.fail(f"expected an object, found {describe(self.value)}")
        if keys:
            for key in self.value:
                if key not in keys:
                    self.fail(
                        f"{shorten(key)} is not supported, so it cannot be honoured; "
                        f"supported here: {', '.join(keys)}"
                    )
        return self

    def get(self, key: str) -> Entry:
        """Return the entry under a key of an object; its value is None if the key is missing."""
        place = f"{self.place}.{key}" if self.place else key
        return Entry(self.file, place, self.value.get(key))

    def items(self) -> Iterator[Entry]:
        """Return the entries of a list."""
        if not isinstance(self.value, list):
            self.fail(f"expected a list, found {describe(self.value)}")
        yield from map(self.at, range(len(self.value)))

    def at(self, number: int) -> Entry:
        """Return an entry of a list."""
        return Entry(self.file, f"{self.place}[{number}]", self.value[number])

    def bounded(self) -> Entry:
        """Return this entry, which is neither too deep nor too long to process."""
        level = [self.value]
        length = 0
        for _ in range(_MAX_DEPTH):
            length += sum(len(value) for value in level if isinstance(value, (str, list, dict)))
            level = [
                item
                for value in level
                if isinstance(value, (dict, list))
                for item in (value.values() if isinstance(value, dict) else value)
            ]
        if level:
            self.fail(f"nests too deeply: more than {_MAX_DEPTH} levels")
        if length > _MAX_LENGTH:
            self.fail(f"is too long: more than {_MAX_LENGTH:,} characters and entries")
        return self

    def string(self) -> str:
        """Return this entry as a string without lone surrogates."""
        if not isinstance(self.value, str):
            self.fail(f"expected a string, found {describe(self.value)}")
        try:
            self.value.encode()
        except UnicodeEncodeError:
            self.fail(f"{shorten(self.value)} holds a lone surrogate, which has no UTF-8")
        return self.value

    def optional(self) -> str | None:
        """Return this entry as a string, or None if the entry is missing."""
        return None if self.value is None else self.string()

    def boolean(self, *, default: bool | None = None) -> bool:
        """Return this entry as true or false, or ``default`` if the entry is missing."""
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, bool):
            self.fail(f"expected true or false, found {describe(self.value)}")
        return self.value

    def must_be(self, *allowed: Any) -> None:
        """Refuse any other value than these (1 is not true, 0.0 is not false)."""
        if not any(self.value == value and type(self.value) is type(value) for value in allowed):
            wanted = " or ".join(json.dumps(value) for value in allowed)
            self.fail(
                f"{shorten(self.value)} is not supported, so it cannot be honoured; "
                f"supported: {wanted}"
            )


def read_json(file: str, data: bytes) -> Entry:
    """Parse a whole file.

    Raises:
        TokenizerFileError: the file is not JSON in UTF-8, nests too deeply, has a duplicate key, or
            holds NaN or an infinity.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        unique_pairs = dict(pairs)
        if len(unique_pairs) != len(pairs):
            ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise ValueError(f"duplicate key {shorten(key)} in an object")
        return unique_pairs

    def no_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except RecursionError:
        raise TokenizerFileError(f"{file}: nests too deeply") from None
    except ValueError as error:  # also of json and of decode
        raise TokenizerFileError(f"{file}: is not JSON in UTF-8: {error}") from None
    return Entry(file, "", value)


def read_bytes(path: Path) -> bytes:
    """Return a file as bytes, unless the file is larger than any tokenizer.

    Raises:
        TokenizerFileError: the file is larger than MAX_FILE_BYTES.
    """
    data = bytearray()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):  # not by its size alone: it may be a pipe or a device
            data += chunk
            if len(data) > MAX_FILE_BYTES:
                raise TokenizerFileError(
                    f"{path}: is larger than {MAX_FILE_BYTES} bytes: not a tokenizer"
                )
    return bytes(data)


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        TokenizerFileError: the file is not UTF-8, or too large.
    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise TokenizerFileError(f"{path}: is not UTF-8: {error}") from None


def describe(value: Any) -> str:
    """Return a JSON value with its kind, for error messages."""
    kinds = {dict: "an object", list: "a list", str: "the string", type(None): "nothing"}
    kind = kinds.get(type(value))
    if kind in ("an object", "a list", "nothing"):
        return kind
    return f"{kind} {shorten(value)}" if kind else shorten(value)


def shorten(value: Any, limit: int = 60) -> str:
    """Return the repr of a value, truncated."""
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        value = value["type"]
    if isinstance(value, (dict, list)):
        return describe(value)
    text = repr(value[: limit + 1] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= limit else f"{text[:limit]}..."
