"""Settings of encoding."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from pipelines.option import Seed, Settings, advanced, changed, option

IdType = Literal["auto", "uint16", "uint32"]
ParquetEncoding = Literal["byte-stream-split", "plain"]
# A row must fit one Parquet page, whose size is a signed 32-bit number; ids are stored in 4 bytes.
MAX_ROW_TOKENS = 1 << 28


@dataclass(frozen=True, kw_only=True)
class RowSettings(Settings, group="Rows"):
    """The making of rows of token ids from documents; it is in the manifest, for `bpe verify`.

    What is not as by default goes into the fingerprint of a part: with another default, raise
    ``LAYOUT`` in encode/steps.py.

    Each document draws its random numbers from a seed of its own, made of ``dropout_seed``, the
    name of its file and its place in it.

    Attributes:
        prepend_token: Special token, or the role bos, to prepend to the ids of each document.
        append_token: Special token, or the role eos, to append to the ids of each document.
        allow_special: Special token to recognize in documents, or all; repeatable.
        dropout: Drop each merge with this probability (BPE-dropout).
        dropout_seed: Seed of --dropout. The same seed gives the same ids, however the corpus is
            split.
        parquet_encoding: How Parquet stores the ids. byte-stream-split: faster to write and to
            read, and smaller for most text. plain: for readers older than those in
            docs/rows.md.

    Raises:
        ConfigError: a value is out of range, or two exclude each other.
    """

    prepend_token: str | None = option(None, metavar="TOKEN")
    append_token: str | None = option(None, metavar="TOKEN")
    allow_special: tuple[str, ...] = option(
        (),
        metavar="TOKEN",
        default_is="none: special tokens are plain text",
    )
    dropout: float = option(0.0, minimum=0, maximum=1, metavar="P")
    dropout_seed: Seed = advanced(0, needs="dropout")
    parquet_encoding: ParquetEncoding = advanced("byte-stream-split", metavar="NAME")

    def to_json(self) -> dict[str, Any]:
        """Return the values that are not defaults, as JSON values."""
        return changed(self.rows)

    @property
    def rows(self) -> RowSettings:
        """Return the making of rows, without their columns besides ids."""
        return RowSettings(**{one.name: getattr(self, one.name) for one in fields(RowSettings)})


@dataclass(frozen=True, kw_only=True)
class EncodeSettings(RowSettings, group="Rows"):
    """`RowSettings`, and what the command settles before workers begin: kept columns, id type.

    Ids are ``uint16`` where every id of the vocabulary fits.

    Attributes:
        keep: Field or column (jsonl, parquet) to copy to the output; repeatable. NAME:TYPE, such as
            score:double or 'tags:list<string>', sets its type.
        id_type: Type of the ids: uint16, uint32, or auto: uint16 if every id of the vocabulary
            fits.
    """

    keep: tuple[str, ...] = option((), metavar="NAME")
    id_type: IdType = advanced("auto", metavar="TYPE")


@dataclass(frozen=True, kw_only=True)
class DriftSettings(Settings, group="Appending"):
    """The measure of the tokenizer's fit, and the limit of a warning.

    Attributes:
        baseline: With --append: counts that the tokenizer was trained on, to detect unseen
            pre-tokens.
        warn_bytes_per_token: With --append: warn below this share of the bytes per token in
            training.
        warn_single_bytes: With --append: warn above this share of single-byte tokens.
        warn_unseen: With --append: warn above N unseen pre-tokens in a million (--baseline).
    """

    baseline: str | None = advanced(
        None,
        needs="append | watch",
        metavar="COUNTS",
        default_is="unseen pre-tokens are not measured",
    )
    warn_bytes_per_token: float = advanced(0.8, needs="append | watch", minimum=0, metavar="SHARE")
    warn_single_bytes: float | None = advanced(
        None, needs="append | watch", minimum=0, metavar="SHARE", default_is="never"
    )
    warn_unseen: float | None = advanced(
        None, needs="append | watch & baseline", minimum=0, metavar="N", default_is="never"
    )
