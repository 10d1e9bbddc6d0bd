"""Settings of an export that cannot be, or do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import ConfigError
from pipelines.settings import ExportSettings

NO_SHARE = r"`validation` .*: give a share from 0 to below 1"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({"validation": share}, NO_SHARE) for share in (1, -0.1, float("nan"), "0.5%", True)),
        *(({"shuffle": seed}, "`shuffle` ") for seed in (-1, 2**63, 1.5, "7", True)),
        # What is taken
        ({"mix": ("web=70%", "code=20%")}, "the shares of `mix` add up to 90%, not to 100%"),
        ({"mix": ("web=70%", "web=30%")}, "web is given twice"),
        ({"mix": ("web=50%", "code=49.9999999%")}, r"add up to 99\.9999999%, not to 100%"),
        ({"mix": ("web=1/3", "code=1/2")}, "add up to 5/6, not to 100%"),
        ({"mix": ("web",)}, "write NAME=SHARE"),
        ({"mix": ("web=1/0",)}, "'1/0' is not a share"),
        ({"mix": ("web=1", "code=0")}, "`mix` code=0: leave the source out"),
        ({"mix": ("=100%",)}, "write NAME=SHARE, such as web=70%"),
        ({"mix_seed": 5}, "`mix_seed` needs `mix` NAME=SHARE or `token_budget` N"),
        ({"token_budget": 0}, "`token_budget` 0 is out of range"),
        # Rows
        ({"max_tokens": 0}, "`max_tokens` 0 is not between 1 and"),
        ({"pack": 1 << 21}, "`pack` 2097152 is not between 1 and 1,048,576"),
        ({"pack": 8, "max_tokens": 8}, "`pack` and `max_tokens` exclude each other"),
        ({"pack_remainder": "drop"}, "needs `pack`"),
        ({"packing": "best-fit"}, "needs `pack`"),
        ({"pack": 8, "packing": "best-fit", "pack_remainder": "drop"}, "`packing` best-fit"),
        ({"pack": 8, "pack_remainder": "carry"}, "use one of keep, drop, pad"),
        ({"pack": 8, "pad_token": "<|end|>"}, "needs `pack_remainder` pad"),
        ({"add_column": ("cu_seqlens",)}, "`add_column` needs `pack`"),
        ({"pack": 8, "add_column": ("cu_seqlens",) * 2}, "`add_column`: a column is named twice"),
        ({"pack": 8, "add_column": ("mask",)}, "use one of document_ids, position_ids, cu_seqlens"),
        # Formats
        ({"pack": 8, "to": "bin", "add_column": ("cu_seqlens",)}, "needs `to` parquet"),
        ({"to": "megatron", "header": "llm.c"}, "`header` needs `to` bin"),
        ({"to": "bin", "shard_size": 5}, "`shard_size` needs `to` mds or `to` litdata"),
        ({"to": "csv"}, "`to` 'csv' is unknown"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ExportSettings(**{"to": "parquet", **settings})
