"""Token ids in the files that trainers read.

- `format`: what every format does (`Format`), and what all of them share.
- `flat`, `megatron`, `mds`, `litdata`: a format each; `formats` finds one by its name.
- `shards`: what the last two share: files of many samples behind their offsets.
- `rows`, `source`: the rows of an encoded part, by row groups.
- `manifest`: ``manifest.json``, written last.
- `steps`: an export without Beam; `job`: the command and its pipeline.

`pipelines.verify.export` checks what was written.
"""
