"""Checks of an output against its manifest and its input.

- `base`: stages that check, and their job.
- `encoded`: a corpus, by itself and made again from its input.
- `export`: an export, by itself and made again from its ids.
- `counts`: shards, by themselves and against the input counted again.
- `made_again`: a file that was made again, compared with the one that is there.
- `inputs`: the inputs that an output must be of.
- `job`: the command.

Tokenizer files are checked in `pipelines.cli.verify`.
"""
