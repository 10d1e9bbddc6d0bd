from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pipelines.config import read_config
from pipelines.errors import ConfigError
from pipelines.option import Option, parse

if TYPE_CHECKING:
    from pathlib import Path

KEYS = {
    key.name: key
    for key in (
        Option(help="", group="Input", name="input", repeatable=True),
        Option(help="", group="Input", name="vocab_size", kind="integer", minimum=1),
        Option(help="", group="Input", name="split_size", kind="size", minimum=1),
        Option(help="", group="Input", name="dropout", kind="number"),
        Option(help="", group="Input", name="overwrite", kind="flag"),
        Option(help="", group="Input", name="format", choices=("text", "lines")),
        Option(help="", group="Input", name="output"),
    )
}


def read(tmp_path: Path, text: str | bytes) -> dict[str, object]:
    path = tmp_path / "job.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def owner(name: str) -> str:
        return "bpe encode, not of this command" if name == "tokenizer" else ""

    return dict(read_config(str(path), KEYS, owner=owner))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("vocab-size: 32_000", {"vocab_size": 32_000}),
        ("vocab_size: 32k", {"vocab_size": 32_000}),
        ("split_size: 64 MiB", {"split_size": 64 * 2**20}),
        ("overwrite: true\nformat: lines", {"overwrite": True, "format": "lines"}),
        ("vocab_size: '10'\noverwrite: 'False'", {"vocab_size": 10, "overwrite": False}),
        (
            "output: 1.10\ninput: [2024-01-01, no]",
            {"output": "1.10", "input": ("2024-01-01", "no")},
        ),
        ("input: [a, b]", {"input": ("a", "b")}),
        ("input: 'corpus/*.txt'", {"input": ("corpus/*.txt",)}),
        ("# nothing yet", {}),
    ],
)
def test_reads_each_type(tmp_path: Path, text: str, values: dict[str, object]) -> None:
    assert read(tmp_path, text) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vocab_sise: 10", "job.yaml: vocab_sise: unknown key; did you mean vocab_size?"),
        ("VocabSize: 10", "did you mean vocab_size?"),
        ("1: a", "job.yaml: 1: unknown key"),
        ("tokenizer: t.json", "an option of bpe encode, not of this command"),
        ("vocab_size: 3.5", "vocab_size: '3.5' is not a whole number"),
        ("dropout: often", "dropout: 'often' is not a number"),
        ("vocab_size: true", "'true' is not a whole number"),
        ("vocab_size: 0", "0 is out of range: use 1 or more"),
        ("vocab_size: 9223372036854775808", "9223372036854775808 is out of range: use 9,223"),
        ("vocab_size:", "vocab_size: no value"),
        ("overwrite: 1", "'1' is not true or false"),
        ("split_size: 10 furlongs", "'10 furlongs' is not a size"),
        ("split_size: 0", "0 is out of range: use 1 or more"),
        ("split_size: true", "'true' is not a size"),
        ("format: words", "'words' is unknown: use one of text, lines"),
        ("output: null", "output: no value; give one or remove the line"),
        ("output: [a]", "output: write one value"),
        ("input: {a: b}", "input: write one value"),
        ("input: [[a]]", "input: write one value"),
        ("output: a\noutput: b", "output: given twice"),
        ("vocab-size: 1\nvocab_size: 2", "vocab_size: given twice"),
        ("- a\n- b", "job.yaml: this is not a mapping"),
        ("a: [", "not a YAML file: line 1"),
        ("output: !!python/object/apply:os.system [ls]", "output: write one value"),
        (b"output: \xff\xfe", "not a YAML file"),
        ("a: 1\n---\nb: 2", "not a YAML file"),
        ("? [1, 2]\n: x", "unknown key"),
        ("[" * 1000, "not a YAML file"),
    ],
)
def test_refuses_what_is_wrong(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "job.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *[("1", 1), ("64MiB", 64 << 20), ("64 mib", 64 << 20), ("0.5 GB", 500_000_000), ("7b", 7)],
        *[("2k", 2000), ("64M", 64_000_000), ("2Ki", 2048), ("1.5", 1)],
    ],
)
def test_parses_sizes(text: str, size: int) -> None:
    assert parse("size", text) == size


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("32000", 32_000), ("32k", 32_000), ("32 K", 32_000), ("1.5M", 1_500_000), ("2Ki", 2048)],
        *[("-1", -1), ("1.0000000000000000001", None), ("1.5", None), ("2kb", None), ("k", None)],
        *[("32e3", None), ("1.2345k", None), ("", None), ("2i", None)],
    ],
)
def test_parses_whole_numbers(text: str, number: int | None) -> None:
    if number is not None:
        assert parse("integer", text) == number
        return
    with pytest.raises(ValueError, match="is not a whole number"):
        parse("integer", text)
