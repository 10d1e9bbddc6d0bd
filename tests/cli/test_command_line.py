from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest

import bpe as library
from bpe import _native, formats, names
from bpe.counts.manifest import MAX_SHARDS
from pipelines import settings
from pipelines.cli import options
from pipelines.cli.commands import NAMES, command_of
from pipelines.option import declared
from tests.cli.process import ROOT, bpe, execute, refused

if TYPE_CHECKING:
    from pathlib import Path

COUNT = ("count", "--input", "a.txt", "--output", "out")
TRAIN = ("train", "--counts", "a", "--output", "out", "--vocab-size", "300")


def test_help_lists_the_commands_in_the_order_of_a_job() -> None:
    done = bpe("--help")
    listed = [line.split()[0] for line in done.stdout.split("Commands:\n")[1].splitlines() if line]
    order = ("count", "train", "encode", "run", "verify", "decode", "export")
    assert listed[: len(NAMES)] == [
        *order,
        *("compare", "convert", "show", "words", "report", "completion"),
    ]
    assert done.stderr == ""


@pytest.mark.parametrize("name", NAMES)
def test_each_command_explains_itself_on_a_screen_with_an_example(name: str) -> None:
    short = bpe(name, "--help", COLUMNS="80").stdout
    assert f"Usage: bpe {name}" in short
    assert f"  bpe {name} " in short.split("Example:\n")[1]
    assert bpe(name, "--help").stdout == bpe(name, "-h").stdout
    shown = [line for line in short.splitlines() if re.match(r" {2}(-\w, )?--", line)]
    assert len(shown) <= {"train": 30}.get(name, 24)
    assert len(short.splitlines()) <= 60
    if "--help-all" in short:
        assert len(short) < len(bpe(name, "--help-all").stdout) / 2


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_explained_and_in_the_reference(name: str) -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    part = page.split(f"\n## bpe {name}\n")[1].split("\n## ")[0]
    for param in command_of(name).params:
        if isinstance(param, click.Option) and param.expose_value:
            assert param.help, param.name
            assert param.help.endswith((".", "]")), param.help
            assert all(f"`{opt}`" in part for opt in param.opts), param.name


def test_help_has_the_defaults_of_the_preset() -> None:
    def defaults(*arguments: str) -> dict[str, str]:
        text = bpe(*arguments, "--help-all").stdout
        assert "[default: (" not in text
        each = (" ".join(one.split()).split("[default: ") for one in text.split("\n  --")[1:])
        return {name.split()[0]: value[0].split("]")[0] for name, *value in each if value}

    words = {"pretokenizer": "words", "symbols": "characters", "max-merges": "200"}
    words |= {"ties": "first-seen", "min-frequency": "2", "end-of-word": "</w>"}
    assert words.items() <= defaults("words").items()
    assert defaults("words", "--preset", "interview")["max-merges"] == "15"
    assert defaults("train")["symbols"] == "bytes; characters for wordpiece and sentencepiece-bpe"
    assert defaults("train", "--preset", "words").items() >= words.items()


def test_help_waits_neither_for_beam_nor_for_other_commands() -> None:
    code = (
        "import sys\nfrom pipelines.cli import main\nmain(['train', '--help'])\n"
        "slow = {'apache_beam', 'pyarrow', 'rich', 'jinja2', 'matplotlib', 'pipelines.cli.count'}\n"
        "sys.exit(bool(slow & set(sys.modules)))"
    )
    execute(sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("argument", "changes", "status", "last"),
    [
        ("--version", {}, 0, "tidy 1"),
        ("no-such-command", {"OPENBLAS_NUM_THREADS": "3"}, 2, "tidy 3"),
    ],
)
def test_a_process_ends_when_all_is_said_and_tidied_up(
    argument: str, changes: dict[str, Any], status: int, last: str
) -> None:
    code = (
        "import atexit, os, sys\nfrom pipelines.cli import commands, program\n"
        "def main(arguments=None):\n"
        "    atexit.register(lambda: print('tidy', os.environ['OPENBLAS_NUM_THREADS']))\n"
        "    return real(arguments)\n"
        f"real, commands.main = commands.main, main\nsys.argv = ['bpe', '{argument}']\nprogram()"
    )
    done = execute(sys.executable, "-c", code, status=status, **changes)
    assert done.stdout.splitlines()[-1] == last


def test_choices_are_those_of_the_library() -> None:
    assert tuple(name for name, *_ in _native.PRETOKENIZERS) == names.PRETOKENIZERS
    assert tuple(_native.TIES) == names.TIES
    assert tuple(_native.PAIR_COUNTS) == names.PAIR_COUNTS
    assert library.presets.names() == options.PRESETS
    bare = (format_.files.split()[0] for format_ in formats.FORMATS if not format_.self_contained)
    help_ = declared(options.FileSettings)["pretokenizer"].help
    assert f"({', '.join(name.lstrip('*') for name in bare)})" in help_
    assert declared(settings.CountSettings)["shards"].maximum == MAX_SHARDS
    with pytest.raises(library.errors.TrainingError, match="'unigram' is unknown: use bpe"):
        library.presets.model_of("unigram")


@pytest.mark.parametrize("command", ["convert", "compare", "show"])
def test_help_names_the_files_of_every_format(command: str) -> None:
    text = bpe(command, "--help-all").stdout
    for format_ in formats.FORMATS:
        names = [word.lstrip("*") for word in format_.files.split() if "." in word]
        assert all(name in text for name in names), names


def test_no_command_is_wrong_and_helps() -> None:
    done = bpe(status=2)
    assert "Usage: bpe" in done.stderr
    assert done.stdout == ""


def test_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("importlib.metadata.version")  # a package run from its sources has none
    assert bpe("--version").stdout == f"bpe {library.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "No such command 'nope'"),
        (("count", "--output", "out"), "Missing option '--input'"),
        ((*COUNT, "--inptu", "b"), "--input"),
        ((*COUNT, "--pretokenizer", "gpt9"), "'gpt9' is unknown (did you mean 'gpt2'?): use"),
        ((*COUNT, "--pretokenizer", "gpt-4o"), "(did you mean 'o200k'?)"),
        ((*COUNT, "--max-failures", "9" * 400), "999 is out of range: use 9,223,"),
        ((*COUNT, "--shards", "some"), "'some' is not a whole number"),
        ((*COUNT, "--overwrite", "--resume"), "exclude each other"),
        (("count", "--input", "", "--output", "out"), "empty"),
        (("count", "--input", "a", "--output", ""), "--output is empty"),
        (("train", *TRAIN[3:]), "give --input (a corpus) or --counts"),
        ((*TRAIN, "--input", "a"), "--input and --counts exclude each other"),
        ((*COUNT, "--split-size", "9" * 400 + ".5"), "out of range"),
        (("train", "--counts", "a:-2", *TRAIN[3:]), "the weight '-2' is not a number"),
        (("train", "--counts", "d:1/0", *TRAIN[3:]), "'1/0' is not a number"),
        (("train", "--counts", "d:", *TRAIN[3:]), "a directory of that name, write d::1"),
        (("run", "missing.yaml"), "missing.yaml: cannot read the configuration"),
        (("verify", "a", "b"), "unexpected argument 'b'"),
        (("show", "tokenizer.json"), "give WORD..., or --id or --search, or --curve"),
        (("count", "--input", "a", "b", *COUNT[3:]), "put it in quotes (--input 'corpus/*.txt')"),
        ((*COUNT, "--", "b.txt"), "Put it in quotes"),
        ((*COUNT, "--", "--region=x", ""), "'' after -- does not begin with --"),
        ((*COUNT, "--", "--direct_running_mode=backwards"), "backwards"),
        ((*COUNT, "--pattern", "("), "pattern '(' does not compile"),
        ((*COUNT, "--special-token", ""), "--special-token is empty: give TOKEN"),
        ((*COUNT, "--special-token", "a", "--special-token", "a"), "special token"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "a").write_text("text")
    refused(message, *arguments, cwd=tmp_path, status=(2,))


def test_a_failed_job_shows_its_traceback_on_demand(tmp_path: Path) -> None:
    done = bpe(*COUNT, cwd=tmp_path, status=1, BPE_DEBUG="1")
    assert "Traceback (most recent call last)" in done.stderr
    assert "\nbpe: error: " in done.stderr
