"""Settings of jobs: frozen, validated when made.

The command line, job files, Python and docs/commands.md go by the declarations here. A command
declares the options that are its own alone, such as ``--tokenizer``, where it is written, by
`pipelines.option.option`, too.
"""

from __future__ import annotations

from pipelines.settings.corpus import LARGEST_RECORD as LARGEST_RECORD
from pipelines.settings.corpus import MAX_RECORD as MAX_RECORD
from pipelines.settings.corpus import NO_NORMALIZER as NO_NORMALIZER
from pipelines.settings.corpus import AppendSettings as AppendSettings
from pipelines.settings.corpus import Format as Format
from pipelines.settings.corpus import InputSettings as InputSettings
from pipelines.settings.corpus import OutputSettings as OutputSettings
from pipelines.settings.corpus import PretokenSettings as PretokenSettings
from pipelines.settings.counting import MAX_GROUPS as MAX_GROUPS
from pipelines.settings.counting import MERGE_PATTERN as MERGE_PATTERN
from pipelines.settings.counting import SHARDS as SHARDS
from pipelines.settings.counting import CountSettings as CountSettings
from pipelines.settings.counting import RunSettings as RunSettings
from pipelines.settings.encoding import MAX_ROW_TOKENS as MAX_ROW_TOKENS
from pipelines.settings.encoding import DriftSettings as DriftSettings
from pipelines.settings.encoding import EncodeSettings as EncodeSettings
from pipelines.settings.encoding import IdType as IdType
from pipelines.settings.encoding import ParquetEncoding as ParquetEncoding
from pipelines.settings.encoding import RowSettings as RowSettings
from pipelines.settings.execution import RUNNERS as RUNNERS
from pipelines.settings.execution import Execution as Execution
from pipelines.settings.execution import Staging as Staging
from pipelines.settings.execution import cores as cores
from pipelines.settings.exporting import MAX_PACK as MAX_PACK
from pipelines.settings.exporting import MAX_SHARD_SIZE as MAX_SHARD_SIZE
from pipelines.settings.exporting import SHARD_SIZE as SHARD_SIZE
from pipelines.settings.exporting import AddedColumn as AddedColumn
from pipelines.settings.exporting import BinHeader as BinHeader
from pipelines.settings.exporting import ExportFormat as ExportFormat
from pipelines.settings.exporting import ExportSettings as ExportSettings
from pipelines.settings.exporting import Packing as Packing
from pipelines.settings.exporting import PackRemainder as PackRemainder
from pipelines.settings.shares import CountsInput as CountsInput
from pipelines.settings.shares import ShareOf as ShareOf
from pipelines.settings.shares import parse_shares as parse_shares
from pipelines.settings.shares import split_name as split_name
from pipelines.settings.training import CHAT_TEMPLATES as CHAT_TEMPLATES
from pipelines.settings.training import MODELS as MODELS
from pipelines.settings.training import PARITY_MIN_FREQUENCY as PARITY_MIN_FREQUENCY
from pipelines.settings.training import PARITY_TIES as PARITY_TIES
from pipelines.settings.training import SYMBOLS as SYMBOLS
from pipelines.settings.training import ModelSettings as ModelSettings
from pipelines.settings.training import ParitySettings as ParitySettings
from pipelines.settings.training import RoleSettings as RoleSettings
from pipelines.settings.training import TrainSettings as TrainSettings
