"""``bpe verify``: is an output, or a tokenizer file, what it says?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_json, size_line, sizes, summarized, titled
from pipelines.settings import Execution, InputSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bpe import Tokenizer
    from pipelines.cli.layers import Values

SHOWN = 20
TOKENIZER = "tokenizer.json"


@command(
    *(InputSettings, Execution, options.FileSettings, options.Config, options.Messages),
    changes={"input": {"required": False}},
    leave_out=["split_size", "max_failures"],
)
@click.argument("path", metavar="PATH")
def verify(values: Values) -> None:
    """Verify an output directory or a tokenizer file.

    Ids, an export, counts or a tokenizer must be complete and undamaged. Every file is compared
    with its record or the manifest (size, SHA-256). Give --input to compare with the inputs, and
    --format and related options as in the job. Every document of encoded output is then encoded
    again; it must appear exactly once and have the same ids. If the tokenizer is lossless, the ids
    must also decode to the original bytes. Counts are counted again, and must be the same. To
    compare an export with its sources, give them as to bpe export: --input [NAME=]IDS. Every part
    is then made again.

    Of a directory of bpe train or bpe run, everything is verified. Unfinished output is an error: a
    killed job, a missing file, or a file of another run. A tokenizer file is read in full, and
    tokens that do not encode to themselves are listed.

    Exit status 0: everything matches; 1: a mismatch, named in the message.

    Example:
        bpe verify ids
        bpe verify ids --input 'corpus/*.jsonl'
        bpe verify model/tokenizer.json
        bpe verify training-data --input ids
        bpe verify s3://bucket/ids --storage-option endpoint_override=http://storage:9000
    """
    from pipelines.output.state import Output, complete_outputs

    path = values["path"]
    inputs = values.settings(InputSettings) if values["input"] else None
    execution = values.settings(Execution)
    outputs: tuple[Output, ...] = (Output(directory=path, kind="tokenizer"),)
    if _is_tokenizer_file(path):
        if execution.beam_args:
            raise click.UsageError(
                "a tokenizer file is read without Beam: omit the arguments after --"
            )
    else:
        with loading():
            from pipelines.run import use_storage
            from pipelines.verify import job

        use_storage(execution)
        outputs = complete_outputs(path)
    if inputs is not None and all(one.kind == "tokenizer" for one in outputs):
        raise click.UsageError("--input goes with encoded output or counts, not a tokenizer")
    results: dict[str, dict[str, Any]] = {}
    tokenizer: Tokenizer | None = None
    corpora = [one.directory for one in outputs if one.kind == "encoded"]
    for one in outputs:
        if one.kind == "tokenizer":
            tokenizer = _read_tokenizer(values, one.directory)
            facts = _verify_tokenizer(tokenizer, one.directory)
            lines = titled("failed" if facts["unreachable"] else "verified", _lines(facts))
        else:
            of_run = one.kind == "export" and corpora
            verified = job.verify(
                directory=one.directory,
                inputs=InputSettings(patterns=(corpora[0],)) if of_run else inputs,
                execution=execution,
                progress=options.progress(values),
                tokenizer=tokenizer,
            )
            facts, lines = summarized(values, verify=verified)
        results[one.folder or str(one.kind)] = facts
        if not values["json"]:
            click.echo("\n".join(lines))
    if values["json"]:
        show_json(results if len(results) > 1 else next(iter(results.values())))
    if any(result.get("unreachable") for result in results.values()):
        raise click.exceptions.Exit(1)


def _is_tokenizer_file(path: str) -> bool:
    """Return whether a path is a local file, or ends as files of tokenizers do."""
    from bpe.formats import ENDINGS

    local = Path(path)
    return not local.is_dir() and (local.is_file() or local.name.endswith(ENDINGS))


def _verify_tokenizer(tokenizer: Tokenizer, path: str) -> dict[str, Any]:
    """Check a tokenizer that was read from ``path``; return what was found, as JSON values.

    A token is *unreachable* where merging its bytes does not end in it: no text has it. It is
    *cut* if it can be merged, but its text is cut in several pre-tokens, so
    that it occurs in longer ones, if anywhere.
    """
    unreachable = tokenizer.unreachable()
    return {
        "tokenizer": path,
        **sizes(tokenizer),
        "unreachable": _described(tokenizer, unreachable),
        "cut": _described(tokenizer, _cut_apart(tokenizer, without=set(unreachable))),
    }


def _read_tokenizer(values: Values, path: str) -> Tokenizer:
    """Read the tokenizer of a file or a directory, and ``training.json`` if it is there.

    Raises:
        BpeError: one of them is damaged.
        JobError: one of them cannot be read.
    """
    from pipelines import storage
    from pipelines.tokenizer_files import read_training

    if not storage.is_local(path):
        path = storage.join(storage.located(path), TOKENIZER)
    tokenizer = options.load_tokenizer(values, path)
    if Path(path).is_dir() or Path(path).name == TOKENIZER:
        read_training(path)
    return tokenizer


def _cut_apart(tokenizer: Tokenizer, *, without: set[int]) -> list[int]:
    """Return the ids of ordinary tokens that are valid text but encode to several ids."""
    import pyarrow as pa

    skipped = {*without, *tokenizer.special_tokens.values(), *tokenizer.added_tokens.values()}
    texts = {
        id_: token
        for id_, token in enumerate(tokenizer.tokens)
        if token is not None and id_ not in skipped and _is_text(token)
    }
    lengths = tokenizer.encode_arrow(pa.array(texts.values(), pa.binary())).value_lengths()
    return [id_ for id_, length in zip(texts, lengths.to_pylist(), strict=True) if length > 1]


def _is_text(token: bytes) -> bool:
    return token.decode(errors="ignore").encode() == token


def _described(tokenizer: Tokenizer, ids: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"id": id_, "token": tokenizer.token_bytes(id_).decode("utf-8", "backslashreplace")}
        for id_ in ids
    ]


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['tokenizer']}: {size_line(facts)}"
    if not facts["unreachable"]:
        yield "each token is what its own bytes merge to"
    for name, what in (
        ("unreachable", "cannot be encoded to itself: its bytes do not merge to it"),
        ("cut", "is text that is cut: it occurs in longer pieces, if anywhere"),
    ):
        tokens = facts[name]
        yield from (f"token {one['id']} {one['token']!r} {what}" for one in tokens[:SHOWN])
        if len(tokens) > SHOWN:
            yield f"and {len(tokens) - SHOWN:,} more ({name}; --json lists all)"
