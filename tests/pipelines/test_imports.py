"""Importing changes nothing and runs in no circle; a command leaves a program as it was."""

from __future__ import annotations

import ast
import graphlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What a program has set up, with the modules of others whose contents we could replace.
STATE = """
import logging, os, signal, sys, threading, warnings
import apache_beam, apache_beam.runners.portability.fn_api_runner.fn_runner as fn_runner
import apache_beam.runners.portability.fn_api_runner.worker_handlers as worker_handlers
import apache_beam.io.filesystems
logging.basicConfig(level=logging.ERROR)

def state():
    root = logging.getLogger()
    named = [logging.getLogger(name) for name in sorted(logging.Logger.manager.loggerDict)]
    others = {
        f"{name}.{key}": id(value)
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] in ("apache_beam", "boto3", "botocore", "grpc", "pyarrow")
        for key, value in vars(module).items()
        if callable(value) or key.isupper()
    }
    return {
        "root": [root.level, *map(repr, root.handlers), *map(repr, root.filters)],
        "loggers": [[one.name, one.level, one.disabled, *map(repr, one.filters)]
                    for one in named if one.name.partition(".")[0] not in ("bpe", "pipelines")
                    and (one.level or one.disabled or one.filters)],
        "warnings": [list(map(str, warnings.filters)), repr(warnings.showwarning)],
        "hooks": [repr(sys.excepthook), repr(threading.excepthook), repr(sys.unraisablehook)],
        "signals": [repr(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)],
        "streams": [repr(sys.stdout), repr(sys.stderr)],
        "environment": sorted(os.environ.items()),
        "others": others,
    }
"""
IMPORT = """
first = state()
import pipelines
for name in pipelines.__all__:
    getattr(pipelines, name)
assert not {"jinja2", "matplotlib"} & set(sys.modules), "only a report needs them"
second = state()
"""
# In this process, as a notebook would; one job that ends well, one that does not.
COMMAND = """
from pipelines import run  # what a job imports
from pipelines.cli import main
first = state()
statuses = [main([*arguments, "--output", out]) for out in ("a", "b")]
statuses.append(main([*arguments, "--output", "a"]))
second = state()
assert statuses == [0, 0, 1], statuses
"""
COMPARE = """
import json
second["others"] = {key: second["others"].get(key) for key in first["others"]}
print(json.dumps({key: [first[key], second[key]] for key in first if first[key] != second[key]}))
"""


def changed(code: str, folder: Path) -> dict[str, object]:
    """The values that the code changes."""
    command = [sys.executable, "-c", STATE + code + COMPARE]
    output = subprocess.check_output(command, cwd=folder, env=environment(), text=True)
    result: dict[str, object] = json.loads(output.splitlines()[-1])
    return result


def test_importing_changes_nothing(tmp_path: Path) -> None:
    assert changed(IMPORT, tmp_path) == {}


def test_a_command_puts_back_what_it_changes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words\nand others\n" * 50)
    arguments = "count --input a.txt --format lines --workers 2 --shards 2 --split-size 300"
    code = f"arguments = {arguments.split()}\n{COMMAND}"
    assert changed(code, tmp_path) == {}


def imported(path: Path) -> Iterator[str]:
    """The imports of a module, for types too; not those of a function when it is called."""
    for top in ast.parse(path.read_text()).body:
        for node in [*top.body, *top.orelse] if isinstance(top, ast.If) else [top]:
            if isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


def import_graph(depth: int | None = None) -> dict[str, set[str]]:
    """The modules of ``pipelines``, each with those that it imports; rooms, if cut to a depth."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / "pipelines").rglob("*.py")
    }
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        ends = (name if name in paths else name.rpartition(".")[0] for name in imported(path))
        room, *others = (
            ".".join(one.split(".")[:depth]) for one in (module, *(paths.keys() & set(ends)))
        )
        graph.setdefault(room, set()).update(set(others) - {room})
    return graph


@pytest.mark.parametrize("depth", [None, 2])
def test_no_import_runs_in_a_circle(depth: int | None) -> None:
    """Of files, and of rooms: so each has a floor, and no import runs back up."""
    graphlib.TopologicalSorter(import_graph(depth)).prepare()


def test_only_the_command_line_knows_the_command_line() -> None:
    graph = import_graph(2)
    assert [room for room, others in graph.items() if "pipelines.cli" in others] == []


def test_everything_works_without_pandas(tmp_path: Path) -> None:
    program = """
import json, sys
sys.modules["pandas"] = None  # what a fresh environment has: pyarrow asks for it in odd places
import apache_beam as beam, pyarrow as pa, bpe
from pipelines import CountPretokens, EncodeDocuments, ReadDocuments, TrainTokenizer
from pipelines.cli import main

def plain(row):
    return row.input_ids.dtype.name

with open("corpus.jsonl", "w") as lines:
    for text in ["low lower lowest", "newest"] * 3:
        print(json.dumps({"id": "a", "text": text}), file=lines)
for command in (
    "train --input corpus.jsonl --output model --vocab-size 265",
    "encode --input corpus.jsonl --tokenizer model --output ids",
    "verify ids --input corpus.jsonl",
    "export ids --to bin --output flat",
    "compare model model/tokenizer.json --input corpus.jsonl --output compared.json",
    "report ids --output report.html",
):
    assert main(command.split()) == 0, command
with beam.Pipeline(runner="FnApiRunner") as p:
    encode = EncodeDocuments(tokenizer="model/tokenizer.json", as_numpy=True)
    rows = p | ReadDocuments(["corpus.jsonl"]) | encode
    names = rows | beam.Map(plain) | beam.Distinct()
    tables = p | "tables" >> ReadDocuments(["corpus.jsonl"], as_tables=True)
    _ = (names, tables | "of tables" >> encode) | beam.Flatten() | beam.Map(print)
"""
    output = subprocess.check_output([sys.executable, "-c", program], cwd=tmp_path, text=True)
    assert "uint16" in output
