"""The jobs of the commands, under one name; by default on one worker, which is quickest here."""

from functools import partial

from pipelines.compare.job import compare
from pipelines.count.job import count
from pipelines.decode import decode
from pipelines.encode.job import encode
from pipelines.export.job import export
from pipelines.recipes import train
from pipelines.settings import Execution
from pipelines.verify.job import verify as verify_on_all_cores

verify = partial(verify_on_all_cores, execution=Execution(workers=1))

__all__ = ["compare", "count", "decode", "encode", "export", "train", "verify"]
