"""Token ids in the files that trainers read.

- `format`: what every format does (`Format`), and what all of them share.
- `flat`, `megatron`, `mds`, `litdata`: a format each; `formats` finds one by its name.
- `shards`: what the last two share: files of many samples after their offsets.
- `plan`: the sources, and the parts that an export pins; `source`: reading them, in blocks.
- `choose`, `exchange`, `make`: the stages; `sections`, `rows`: which documents go where.
- `manifest`: ``manifest.json``, written last; `job`: the command, and the stages in order.

`pipelines.verify.export` checks what was written.
"""
