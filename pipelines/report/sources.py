"""Sources of a report: outputs of jobs, a tokenizer, or a comparison."""

from __future__ import annotations

from pathlib import Path

from bpe.formats import ENDINGS
from pipelines import storage
from pipelines.compare.result import is_comparison
from pipelines.output.names import OF_WORDS, RUNS, TOKENIZER, TRAINING
from pipelines.output.state import complete_outputs
from pipelines.storage import join


def find_sources(path: str) -> dict[str, str]:
    """Find the contents of ``path``: a job's directory, a tokenizer or a comparison.

    Returns:
        The path of each source that is there, by name: ``tokenizer``, a file; ``training``, the
        ``training.json`` of this tokenizer; ``counts``, ``encoded`` and ``export``, directories;
        ``comparison``, a file that ``bpe compare --output`` wrote. And always ``directory``: the
        named one, or that of the named file.

    Raises:
        InputError: the path has no source, or an incomplete output.
        ConfigError: the filesystem of the path cannot be used here.
    """
    directory, outputs = storage.located(path), dict[str, str]()
    tokenizer = join(directory, TOKENIZER)
    if _is_file(directory):
        tokenizer, directory = directory, directory.rpartition("/")[0]
        if is_comparison(tokenizer):
            return {"directory": directory, "comparison": tokenizer}
        is_trained = tokenizer == join(directory, TOKENIZER)
    else:
        found = complete_outputs(directory)
        named = [one for one in found if one.folder not in (OF_WORDS, RUNS)]
        outputs = {str(one.kind): one.directory for one in named}
        is_trained = outputs.pop("tokenizer", None) is not None
    files = {"tokenizer": tokenizer} | (
        {"training": join(directory, TRAINING)} if is_trained else {}
    )
    present = {name: file for name, file in files.items() if storage.exists(file)}
    return {"directory": directory, **outputs, **present}


def _is_file(path: str) -> bool:
    """Return whether a path is a file with an ending of tokenizer files."""
    name = path.rpartition("/")[2]
    is_folder = storage.is_local(path) and Path(path).is_dir()
    return name.endswith(ENDINGS) and not is_folder and storage.exists(path)
