"""Token ids in the files that trainers read.

- `format`: the writer of a part (`PartWriter`), on which each format is based.
- `flat`, `megatron`, `mds`, `litdata`: a format each; `formats` finds one by its name.
- `shards`: what the last two share: files of many samples after their offsets.
- `plan`: the sources, and the parts that an export pins; `source`: reading them, in blocks.
- `choose`, `exchange`, `make`: the stages; `sections`, `rows`: which documents go where;
  `columns`: columns on demand.
- `manifest`: ``manifest.json``, written last; `job`: the command, and the stages in order.

`pipelines.verify.export` checks what was written.
"""
