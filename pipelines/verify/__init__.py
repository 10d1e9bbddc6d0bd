"""Whether an output is what its manifest and its input say.

- `encoded`: a corpus without its rows: tokenizer, parts, totals.
- `rows`, by `pipelines.encode.joining`: the rows of a part, by themselves and against the documents
  of the input.
- `export`: the files of an export, by themselves and against the encoded corpus.
- `counts`: shards, by themselves and against the input counted again.
- `pipelines.output.check_files`, `pipelines.count.check_parts`: names, sizes and checksums of
  files, and what is wrong with a piece.
- `job`: the command and its pipeline.

Tokenizer files are checked in `pipelines.cli.verify`.
"""
