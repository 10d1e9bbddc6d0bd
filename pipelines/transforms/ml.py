"""Encoding inside Beam's MLTransform."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.ml.transforms.base import MLTransformProvider

import bpe
from pipelines.elements import check_field
from pipelines.errors import ConfigError
from pipelines.option import list_of
from pipelines.output.names import TOKENIZER
from pipelines.tokenizer_files import load_tokenizer, loads, tokenizer_json
from pipelines.transforms.encoding import EncodeDocuments

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from typing_extensions import Self


class BPETokenize(MLTransformProvider):  # type: ignore[misc]  # Beam has no types
    """Replaces text by token ids, as one of the transforms of Beam's ``MLTransform``.

    Where artifacts are written, the tokenizer itself is among them; where they are read, nothing
    else is needed. Elements are dicts or Rows; ids are numpy arrays, as of `EncodeDocuments`.

    ``MLTransform`` reads and writes its artifacts, and so the tokenizer's file, when it is applied
    to a PCollection, not when the pipeline runs.

    Example::

        rows | MLTransform(write_artifact_location="artifacts").with_transform(
            BPETokenize(columns=["text"], tokenizer="tokenizer.json")
        )
        rows | MLTransform(read_artifact_location="artifacts")

    Args:
        columns: the fields that hold text; each holds ids afterwards.
        tokenizer: the path of a file, or a `bpe.Tokenizer`.
        allowed_special: special tokens that are recognized in the text, or ``"all"``.
        append_token: a special token after each text.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(
        self,
        *,
        columns: Sequence[str],
        tokenizer: str | os.PathLike[str] | bpe.Tokenizer,
        allowed_special: Collection[str] | str = (),
        append_token: str | None = None,
    ) -> None:
        names: Any = columns
        self.columns = list(list_of("columns", names))
        if not self.columns:
            raise ConfigError("columns is empty: name the fields that hold text")
        for column in self.columns:
            check_field("columns", column)
        if not isinstance(tokenizer, (str, os.PathLike, bpe.Tokenizer)):
            raise ConfigError(
                f"tokenizer is {tokenizer!r:.80}: give the path of a file or a bpe.Tokenizer, "
                "which the artifacts can hold"
            )
        self._tokenizer = tokenizer
        self._tokens: dict[str, Any] = {
            "allowed_special": allowed_special
            if isinstance(allowed_special, str)
            else list(allowed_special),
            "append_token": append_token,
        }
        EncodeDocuments(tokenizer=tokenizer, **self._tokens)

    def get_ptransform_for_processing(self, **_: Any) -> beam.PTransform:
        """Return the transform that the artifacts hold."""
        tokenizer = self._tokenizer
        where = "the tokenizer"
        if not isinstance(tokenizer, bpe.Tokenizer):
            where = os.fspath(tokenizer)
            tokenizer = load_tokenizer(where)
        return TokenizeColumns(self.columns, tokenizer_json(tokenizer, where), self._tokens)


@dataclass(eq=False, repr=False)
class TokenizeColumns(beam.PTransform):  # type: ignore[misc]
    """Encode columns, for `BPETokenize`; the artifacts hold all of it as JSON.

    Attributes:
        columns: the fields that hold text.
        tokenizer_json: the tokenizer.
        tokens: arguments of `EncodeDocuments`.
        handling: arguments of ``with_exception_handling``; None where bad elements fail.
    """

    columns: list[str]
    tokenizer_json: str
    tokens: dict[str, Any]
    handling: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        beam.PTransform.__init__(self)

    def with_exception_handling(self, **arguments: Any) -> Self:
        """As ``MLTransform`` asks for it: see `EncodeDocuments.with_exception_handling`."""
        self.handling = arguments
        return self

    def expand(self, rows: beam.PCollection[Any]) -> Any:
        """Encode one column after the other."""
        tokenizer = loads({TOKENIZER: self.tokenizer_json.encode()})
        failed = []
        for column in self.columns:
            encode = EncodeDocuments(
                tokenizer=tokenizer,
                text_field=column,
                output_field=column,
                as_numpy=True,
                **self.tokens,
            )
            if self.handling is None:
                rows = rows | f"Encode {column}" >> encode
            else:
                handled = encode.with_exception_handling(**self.handling)
                rows, bad = rows | f"Encode {column}" >> handled
                failed.append(bad)
        return (rows, failed | "All failed" >> beam.Flatten()) if failed else rows
