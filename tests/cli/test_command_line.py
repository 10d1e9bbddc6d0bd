from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, get_args

import click
import pytest

import bpe as library
from bpe import formats, normalizer, ties
from bpe.counts.manifest import MAX_SHARDS
from bpe.formats import huggingface
from bpe.pair_counts import PAIR_COUNTS
from pipelines import settings
from pipelines.cli import convert, options
from pipelines.cli.commands import command_of
from pipelines.option import declared
from tests.cli import process
from tests.cli.process import environment
from tests.cli.process import in_process as bpe

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (
    "count",
    "train",
    "encode",
    "run",
    "verify",
    "decode",
    "export",
    "compare",
    "convert",
    "show",
    "words",
    "report",
    "completion",
)
COUNT = ("count", "--input", "a.txt", "--output", "out")
TRAIN = ("train", "--counts", "a", "--output", "out", "--vocab-size", "300")


def error(*arguments: str | Path, status: int = 2, **more: Path) -> str:
    """The sentence of a command that is wrong: on stderr, once, and nothing on stdout."""
    done = bpe(*arguments, status=status, cwd=more.get("cwd"))
    assert done.stdout == ""
    assert done.stderr.count("bpe: error: ") == 1
    assert "Traceback" not in done.stderr
    return done.stderr.removeprefix("bpe: error: ")


def test_help_lists_the_commands_in_the_order_of_a_job() -> None:
    done = bpe("--help")
    listed = [
        line.split()[0] for line in done.stdout.split("Commands:\n")[1].splitlines()[: len(NAMES)]
    ]
    assert tuple(listed) == NAMES
    assert done.stderr == ""


@pytest.mark.parametrize("name", NAMES)
def test_each_command_explains_itself_with_an_example(name: str) -> None:
    done = bpe(name, "--help")
    assert f"Usage: bpe {name}" in done.stdout
    example = done.stdout.split("Example:\n")[1]
    assert f"  bpe {name} " in example
    assert done.stdout == bpe(name, "-h").stdout


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_explained(name: str) -> None:
    for param in command_of(name).params:
        if isinstance(param, click.Option) and not param.hidden:
            assert param.help, param.name
            assert param.help.endswith((".", "]")), param.help


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
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, capture_output=True)


def test_a_process_ends_when_all_is_said_and_tidied_up() -> None:
    code = (
        "import atexit, os, sys\nfrom pipelines.cli import commands, program\n"
        "def main(arguments=None):\n"
        "    atexit.register(lambda: print('tidy', os.environ['OPENBLAS_NUM_THREADS']))\n"
        "    return real(arguments)\n"
        "real, commands.main = commands.main, main\n"
        "sys.argv = ['bpe', *sys.argv[1:]]\nprogram()"
    )

    def run(*arguments: str, **changes: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment(**changes),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()

    status, lines = run("--version")
    assert (status, lines[1:]) == (0, ["tidy 1"])
    assert run("no-such-command", OPENBLAS_NUM_THREADS="3") == (2, ["tidy 3"])


def test_choices_are_those_of_the_library() -> None:
    assert settings.PRETOKENIZERS == library.PRETOKENIZERS
    assert settings.NORMALIZERS == normalizer.NORMALIZERS
    assert settings.TIES == ties.TIES
    assert settings.PAIR_COUNTS == PAIR_COUNTS
    assert library.presets.names() == options.PRESETS
    assert get_args(convert.LeaveOut) == formats.LEAVE_OUT
    assert get_args(convert.Dialect) == huggingface.DIALECTS
    bare = (format_.files.split()[0] for format_ in formats.FORMATS if not format_.self_contained)
    help_ = declared(options.FileSettings)["pretokenizer"].help
    assert f"({', '.join(name.lstrip('*') for name in bare)})" in help_
    assert declared(settings.CountSettings)["shards"].maximum == MAX_SHARDS
    kinds = [
        type(library.presets.model_of(model, symbols=symbols))
        for model in settings.MODELS
        for symbols in settings.SYMBOLS
    ]
    assert kinds == [
        *(library.ByteLevel, library.CharacterLevel),
        *(library.WordPiece, library.WordPiece),
        *(library.CharacterLevel, library.CharacterLevel),
    ]
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


def test_version() -> None:
    assert bpe("--version").stdout.startswith("bpe ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "No such command 'nope'"),
        (("count", "--output", "out"), "Missing option '--input'"),
        (("count", "--input", "a"), "Missing option '--output'"),
        ((*COUNT, "--inptu", "b"), "--input"),
        ((*COUNT, "--format", "csv"), "'csv' is unknown: use one of auto, text"),
        (
            (*COUNT, "--pretokenizer", "gpt9"),
            "'gpt9' is unknown (did you mean 'gpt2'?): use",
        ),
        ((*COUNT, "--pretokenizer", "gpt4"), "(did you mean 'cl100k'?)"),
        ((*COUNT, "--pretokenizer", "gpt-4o"), "(did you mean 'o200k'?)"),
        ((*COUNT, "--pretokenizer", "r50k_base"), "(did you mean 'gpt2'?)"),
        (("show", "t.json", "--pretokenizer", "gpt3"), "(did you mean 'gpt2'?)"),
        ((*COUNT, "--max-failures", "-1"), "-1 is out of range: use 0 or more"),
        ((*COUNT, "--max-failures", "9" * 400), "999 is out of range: use 9,223,"),
        ((*COUNT, "--max-failures", "some"), "'some' is not a whole number"),
        ((*COUNT, "--workers", "-1"), "-1 is not between 0 and 1,000"),
        ((*COUNT, "--shards", "0"), "0 is not between 1 and 99,999"),
        ((*COUNT, "--shards", "100000"), "100000 is not between 1 and 99,999"),
        ((*COUNT, "--workers", "5000"), "5000 is not between 0 and 1,000"),
        (
            (*TRAIN, "--min-frequency", "9" * 30),
            "use 9,223,372,036,854,775,807 or less",
        ),
        ((*COUNT, "--split-size", "big"), "'big' is not a size"),
        ((*COUNT, "--overwrite", "--resume"), "exclude each other"),
        ((*COUNT, "--pattern", "x", "--pretokenizer", "gpt2"), "exclude each other"),
        (("count", "--input", "", "--output", "out"), "empty"),
        (("count", "--input", "a", "--output", ""), "--output is empty"),
        (("count", "--input", "a", "--output", "out", "--text-field", ""), "--text-field is empty"),
        (
            ("train", "--output", "out", "--vocab-size", "300"),
            "give --input (a corpus) or --counts",
        ),
        ((*TRAIN, "--input", "a"), "--input and --counts exclude each other"),
        ((*TRAIN, "--pretokenizer", "gpt2"), "--counts were split when they were counted"),
        ((*TRAIN, "--pattern", "x"), "--counts were split when they were counted"),
        (("train", "--counts", "a:0", *TRAIN[3:]), "the weight 0 is not above 0: use a whole"),
        ((*COUNT, "--split-size", "9" * 400 + ".5"), "out of range"),
        (("train", "--counts", "a:-2", *TRAIN[3:]), "the weight -2 is not above 0"),
        (("train", "--counts", "d:x", *TRAIN[3:]), "the weight 'x' is not a number: use a whole"),
        (("train", "--counts", "d:1/0", *TRAIN[3:]), "'1/0' is not a number"),
        (("train", "--counts", "d:", *TRAIN[3:]), "a directory of that name, write d::1"),
        (("train", "--counts", "a", "--output", "out"), "give --vocab-size N, or --max-merges N"),
        ((*TRAIN, "--vocab-size", "0"), "0 is out of range: use 1 or more"),
        ((*TRAIN, "--ties", "random"), "'random' is unknown: use one of bytes-min"),
        (("run",), "Missing argument 'CONFIG.yaml'"),
        (("run", "missing.yaml"), "missing.yaml: cannot read the configuration"),
        (("verify",), "Missing argument 'PATH'"),
        (("verify", "a", "b"), "unexpected argument 'b'"),
        (("decode",), "Missing argument 'DIR'"),
        (("show", "tokenizer.json"), "Missing argument 'WORD...'"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in error(*arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_pattern_that_the_shell_expanded_is_explained(tmp_path: Path) -> None:
    said = error("count", "--input", "a.txt", "b.txt", "--output", "out", cwd=tmp_path)
    assert "'b.txt'" in said
    assert "put it in quotes (--input 'corpus/*.txt')" in said


def test_what_follows_two_hyphens_is_for_beam(tmp_path: Path) -> None:
    said = error(*COUNT, "--", "b.txt", "c.txt", cwd=tmp_path)
    assert "'b.txt' after -- does not begin with --" in said
    assert "Put it in quotes" in said


@pytest.mark.parametrize("one", ["-x", "region", ""])
def test_what_beam_cannot_take_is_refused(tmp_path: Path, one: str) -> None:
    assert "does not begin with --" in error(*COUNT, "--", "--region=x", one, cwd=tmp_path)


def test_nothing_to_read_is_named(tmp_path: Path) -> None:
    assert "a.txt" in error(*COUNT, cwd=tmp_path, status=1)


def test_a_failed_job_shows_its_traceback_on_demand(tmp_path: Path) -> None:
    for done in (
        bpe(*COUNT, "--traceback", cwd=tmp_path, status=1),
        process.bpe(*COUNT, cwd=tmp_path, status=1, BPE_DEBUG="1"),
    ):
        assert "Traceback (most recent call last)" in done.stderr
        assert "\nbpe: error: " in done.stderr
    assert "--traceback" not in bpe("count", "--help").stdout
