"""JSON lines to Parquet ids with gigatoken and pyarrow.

INPUT TOKENIZER OUTPUT [--own-reader] [--our-encoding]
"""

import sys

import awkward as ak
import gigatoken
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

source, tokenizer_file, output = sys.argv[1:4]
tokenizer = gigatoken.Tokenizer(tokenizer_file)
fields = pj.ParseOptions()
if "--own-reader" in sys.argv:  # pyarrow reads the ids of the documents alone
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
table = pa.table({"id": table["id"], "input_ids": ids})
if "--our-encoding" not in sys.argv:
    pq.write_table(table, output)
else:  # as bpe encode writes
    kind = ids.type.value_type
    element = pa.field("element", pa.uint16() if kind == pa.uint16() else pa.uint32(), False)
    fields = [table.schema.field("id"), pa.field("input_ids", pa.large_list(element))]
    pq.write_table(
        table.cast(pa.schema(fields)),
        output,
        compression="zstd",
        compression_level=2,
        use_dictionary=False,
        data_page_size=4 << 20,
        column_encoding={
            "id": "DELTA_BYTE_ARRAY",
            "input_ids.list.element": "BYTE_STREAM_SPLIT",
        },
    )
