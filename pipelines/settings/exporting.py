"""Settings of exporting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipelines.errors import ConfigError
from pipelines.option import Positive, Seed, Settings, Share, Size, advanced, option
from pipelines.settings.encoding import MAX_ROW_TOKENS, ParquetEncoding
from pipelines.settings.shares import parse_shares

if TYPE_CHECKING:
    from fractions import Fraction

ExportFormat = Literal["parquet", "bin", "megatron", "mds", "litdata"]
BinHeader = Literal["none", "llm.c"]
PackRemainder = Literal["keep", "drop", "pad"]
Packing = Literal["concatenate", "best-fit"]
AddedColumn = Literal["document_ids", "position_ids", "cu_seqlens"]
MAX_PACK = 1 << 20
SHARD_SIZE = 64 << 20  # of an export whose format has shards of a size
MAX_SHARD_SIZE = 1 << 31  # their offsets are numbers of 32 bits, and a last row may end past it


@dataclass(frozen=True, kw_only=True)
class ExportSettings(Settings, group="Rows"):
    """The choice, shape, order and format of the rows of an export.

    Attributes:
        to: Format of the files. parquet; bin: ids and nothing else (nanoGPT, llm.c); megatron:
            .bin with .idx (Megatron-LM, NeMo); mds: MosaicML's StreamingDataset; litdata:
            chunks for litdata's TokensLoader (LitGPT).
        validation: Hold out this share of the documents, such as 0.5%, for validation. They are
            never training rows.
        mix: Take training documents so that this share of all tokens, such as 70% or 1/3, is of the
            source NAME; repeatable. The shares add up to 100%.
        token_budget: Take N training tokens, such as 10B. A source that has fewer than its
            share is taken several times. With several sources, --mix gives the shares.
        mix_seed: With --mix or --token-budget: another seed takes other documents.
        shuffle: Shuffle the documents, before they are packed. The same seed gives the same
            order. Until the job ends, the ids are in temporary files below DIR/.work.
        pack: Fill rows of N ids with consecutive documents. At most one row for training and
            one for validation is shorter.
        packing: With --pack: concatenate: consecutive documents, cut where a row ends; best-fit:
            put each document into the row that it fills best, and cut only documents longer than a
            row. With best-fit, any row may be short.
        pack_remainder: What to do with the ids that do not fill the last row. keep: write a
            shorter row; drop: leave them out, and count them in the manifest; pad: fill the row
            with --pad-token.
        pad_token: With --pack-remainder pad: special token, or role, that fills the row.
        max_tokens: Split longer documents into chunks of N ids; chunk_index numbers them from
            0.
        add_column: With --pack and --to parquet: column for attention that ends at documents;
            repeatable. document_ids: for each id, the number of its document in the row;
            position_ids: its position in its piece of a document, from 0; cu_seqlens: where
            documents begin, and the length of the row.
        header: With --to bin: header of each file. llm.c: 256 numbers of 32 bits, with the
            number of ids.
        shard_size: With --to mds and litdata: maximum size of a file. A larger row has a file of
            its own.
        parquet_encoding: With --to parquet: how the ids are stored, as for bpe encode.

    Raises:
        ConfigError: a value is out of range, or two exclude each other.
    """

    to: ExportFormat = option(group="Output", metavar="FORMAT")
    validation: Share = option(0.0, group="Documents", default_is="none")
    mix: tuple[str, ...] = option(
        (), group="Documents", metavar="NAME=SHARE", default_is="all documents"
    )
    token_budget: Positive | None = option(
        None,
        group="Documents",
        default_is="all documents; with --mix, the largest number that repeats no document",
    )
    mix_seed: Seed = advanced(0, needs="mix | token_budget", group="Documents", metavar="SEED")
    shuffle: Seed | None = option(
        None, group="Documents", metavar="SEED", default_is="the order of the sources"
    )
    pack: Positive | None = option(
        None, maximum=MAX_PACK, excludes=("max_tokens",), default_is="a row a document"
    )
    packing: Packing = advanced("concatenate", needs="pack", metavar="RULE")
    pack_remainder: PackRemainder = advanced("keep", needs="pack", metavar="RULE")
    pad_token: str | None = advanced(
        None,
        needs="pack_remainder=pad",
        metavar="TOKEN",
        default_is="the role pad of the tokenizer's tokenizer_config.json",
    )
    max_tokens: Positive | None = option(None, maximum=MAX_ROW_TOKENS)
    add_column: tuple[AddedColumn, ...] = advanced((), needs="pack & to=parquet", metavar="NAME")
    header: BinHeader = advanced("none", needs="to=bin", group="Output", metavar="NAME")
    shard_size: Size = advanced(
        SHARD_SIZE,
        needs="to=mds | to=litdata",
        group="Output",
        maximum=MAX_SHARD_SIZE,
        default_is="64MiB",
    )
    parquet_encoding: ParquetEncoding = advanced(
        "byte-stream-split", needs="to=parquet", group="Output", metavar="NAME"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.best_fit and self.pack_remainder == "drop":
            raise ConfigError(
                "`pack_remainder` drop does not work with `packing` best-fit, where any row may be "
                "short: use keep or pad"
            )
        if len(set(self.add_column)) < len(self.add_column):
            raise ConfigError("`add_column`: a column is named twice: once is enough")
        share = self.validation
        if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0 <= share < 1:
            raise ConfigError(
                f"`validation` {share!r}: give a share from 0 to below 1, such as 0.005 or 0.5%"
            )
        parse_shares(self.mix)

    @property
    def best_fit(self) -> bool:
        """True if documents are put into the rows that they fill best."""
        return self.packing == "best-fit"

    @property
    def joins(self) -> bool:
        """True if a row may begin in one document and end in another, anywhere."""
        return self.pack is not None and not self.best_fit

    @property
    def chooses(self) -> bool:
        """True if some training documents may be left out, or taken more than once."""
        return bool(self.mix) or self.token_budget is not None

    @property
    def shares(self) -> dict[str, Fraction]:
        """Return the share of each source of the mix, by name, from 0 to 1; empty without a mix."""
        return parse_shares(self.mix)
