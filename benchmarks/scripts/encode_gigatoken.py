"""JSON lines to Parquet ids with gigatoken and pyarrow: INPUT TOKENIZER OUTPUT [--own-reader]."""

import sys

import awkward as ak
import gigatoken
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

source, tokenizer_file, output = sys.argv[1:4]
tokenizer = gigatoken.Tokenizer(tokenizer_file)
fields = pj.ParseOptions()
if sys.argv[4:] == ["--own-reader"]:  # pyarrow reads the ids of the documents alone
    fields = pj.ParseOptions(
        explicit_schema=pa.schema({"id": pa.string()}), unexpected_field_behavior="ignore"
    )
table = pj.read_json(source, read_options=pj.ReadOptions(block_size=16 << 20), parse_options=fields)
if "text" in table.column_names:
    texts = ak.from_arrow(table["text"].cast(pa.large_string()))  # it wants 64-bit offsets
    encoded = tokenizer.encode_batch(texts, parallel=True)
else:
    encoded = tokenizer.encode_files(gigatoken.JsonlFileSource([source]), parallel=True)
ids = ak.to_arrow(encoded, extensionarray=False)
pq.write_table(
    pa.table({"id": table["id"], "input_ids": ids}),
    output,
    compression="zstd",  # as bpe encode writes
    compression_level=1,
    use_dictionary=False,
)
