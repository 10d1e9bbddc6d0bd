"""JSON lines to Parquet ids with datasets and tokenizers: INPUT TOKENIZER OUTPUT CACHE."""

import sys

import pyarrow.parquet as pq
from datasets import load_dataset
from tokenizers import Tokenizer

source, path, output, cache = sys.argv[1:]
tokenizer = Tokenizer.from_file(path)


def encode(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
    """The ids of a batch of documents."""
    found = tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)
    return {"input_ids": [one.ids for one in found]}


if __name__ == "__main__":
    rows = load_dataset("json", data_files=source, split="train", cache_dir=cache)
    rows = rows.map(encode, batched=True, num_proc=2, remove_columns=["text"])
    pq.write_table(  # Dataset.to_parquet takes no compression
        rows.with_format("arrow")[:],
        output,
        compression="zstd",  # as bpe encode writes
        compression_level=1,
        use_dictionary=False,
    )
