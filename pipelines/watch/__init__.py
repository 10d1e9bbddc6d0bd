"""Files that appear, encoded or counted as they arrive: a job that runs day and night.

`work` takes a file and writes its entry (`pipelines.output.entries`). A handler, `encoding` or
`counting`, makes the output of the file, by the functions of a batch split. `transform` puts that
on Beam, `job` runs it. In the process that started the job, a `keeper` tells what came and has
entries merged (`folding`); `pipelines.drift` measures how well the tokenizer fits.
"""
