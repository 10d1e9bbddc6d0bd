"""Whether an output is what its manifest and its input say.

- `encoded`: a corpus, by itself and made again from its input.
- `export`: an export, by itself and made again from its ids.
- `counts`: shards, by themselves and against the input counted again.
- `pipelines.output.check_files`, `pipelines.count.check_parts`: names, sizes and checksums of
  files, and what is wrong with a piece.
- `job`: the command and its pipeline.

Tokenizer files are checked in `pipelines.cli.verify`.
"""
