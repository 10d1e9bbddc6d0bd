"""``bpe train``: corpus or counts to a tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.layers import Origin
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_summary
from pipelines.option import Settings, advanced, option
from pipelines.settings import (
    PARITY_MIN_FREQUENCY,
    PARITY_TIES,
    CountsInput,
    Execution,
    InputSettings,
    ModelSettings,
    OutputSettings,
    ParitySettings,
    PretokenSettings,
    RoleSettings,
    RunSettings,
    ShareOf,
    TrainSettings,
)

if TYPE_CHECKING:
    from bpe.models import Model
    from pipelines.cli.layers import Values

_OF_CHARACTERS = ("end_of_word", "unknown_token", "initial_alphabet")
_SENTENCEPIECE = "sentencepiece-bpe"


@dataclass(frozen=True, kw_only=True)
class Mixture(Settings, group="Input"):
    """The sources of a training, with their weights.

    Attributes:
        tokenizer: With --counts of runs: the tokenizer of words whose runs were counted.
            --boundless also needs the training.json next to it.
        counts: Counts to train on instead of --input; repeatable. WEIGHT multiplies them: 2, 0.5 or
            1/3. DIR:60% gives them that share of the mix instead.
        mix: Share of the source NAME in training, such as web=70%; repeatable. The shares add up to
            100%. No text is dropped.
        share_of: Unit of the shares of --mix and --counts: bytes of the texts, pre-tokens, or
            tokens of --share-tokenizer.
        share_tokenizer: With --share-of tokens: the tokenizer that gives the tokens. It must have
            the pre-tokenizer of the text.
    """

    tokenizer: str | None = advanced(
        None, needs="counts & superwords | boundless", excludes=("extend",), metavar="FILE"
    )
    counts: tuple[str, ...] = option((), excludes=("input",), metavar="DIR[:WEIGHT]")
    mix: tuple[str, ...] = option((), metavar="NAME=SHARE", default_is="all text, unweighted")
    share_of: ShareOf = advanced("bytes", metavar="UNIT")
    share_tokenizer: str | None = advanced(None, metavar="FILE")


@command(
    *(InputSettings, PretokenSettings, TrainSettings, ParitySettings, ModelSettings),
    *(RunSettings, RoleSettings, OutputSettings, Execution, Mixture),
    *(options.Preset, options.Config, options.Messages),
    changes={"input": {"required": False}},
)
def train(values: Values) -> None:
    r"""Train a tokenizer on a corpus or on counts.

    Writes DIR/tokenizer.json, and DIR/training.json with every merge and its count. With --input,
    the counts stay in DIR/counts (with --mix, in a folder for each source). The roles of tokens
    (--bos and so on) are in DIR/tokenizer_config.json, for transformers' AutoTokenizer.

    With --superwords or --boundless, tokens may cross word boundaries. With --input, the tokenizer
    of words stays in DIR/words and the counts of its runs in DIR/runs, and --resume keeps both.

    Hugging Face's libraries open tokenizer.json and give the same ids, with the exceptions in
    docs/files.md. If they cannot express the tokenizer, they refuse the file, and the summary gives
    the reason.

    Example:
        bpe train --input 'corpus/*.jsonl' --output model --vocab-size 32000
        bpe train --counts english:60% --counts german:40% --output model --vocab-size 32000
        bpe train --input web=web --input code=code --mix web=70% --mix code=30% \
            --output model --vocab-size 32000
        bpe train --parity --counts english --counts german --output fair --vocab-size 32000
        bpe train --input 'corpus/*.jsonl' --extend model/tokenizer.json --output more \
            --vocab-size 40000
        bpe train --input 'corpus/*.jsonl' --output super --vocab-size 32000 --superwords 8000
        bpe train --counts runs --tokenizer model/tokenizer.json --output super --superwords 8000
    """
    data, counts = values.settings(Mixture), tuple(map(CountsInput.parse, values["counts"]))
    inputs = values.settings(InputSettings) if values["input"] else None
    training, output = training_arguments(values), values.settings(OutputSettings)
    execution = values.settings(Execution)
    with loading():
        from pipelines.recipes import train as train_tokenizer

    summary = train_tokenizer(
        inputs=inputs,
        counts=counts,
        output=output,
        execution=execution,
        share_of=data.share_of,
        share_tokenizer=data.share_tokenizer,
        mix=data.mix,
        progress=options.progress(values),
        **training,
    )
    show_summary(values, train=summary)


def training_arguments(values: Values) -> dict[str, Any]:
    """Return the settings of a training for `pipelines.recipes`, by the names of its arguments.

    Raises:
        click.UsageError: options do not go together.
        ConfigError: options do not say when training ends, or parity has no groups.
    """
    return {
        "training": train_settings(values),
        "pretokens": values.settings(PretokenSettings),
        "roles": values.settings(RoleSettings),
        "parity": values.settings(ParitySettings),
        "runs": values.settings(RunSettings),
    }


def train_settings(values: Values) -> TrainSettings:
    """Return the vocabulary that the options ask for; give others the values that they imply.

    Raises:
        click.UsageError: they do not go together.
        ConfigError: they do not say when training ends.
    """
    if values.origins["vocab_size"] != values.origins["max_merges"]:
        values.choose("vocab_size", "max_merges")  # drops what a higher layer replaces
    if values.get("parity"):
        _imply_parity(values)
    if values["model"] == _SENTENCEPIECE:
        _imply_sentencepiece(values)
    return values.settings(
        TrainSettings,
        model=_model(values),
        initial_alphabet=tuple(values["initial_alphabet"] or ""),
        extend=values.get("tokenizer") or values.get("extend"),
    )


def _imply_parity(values: Values) -> None:
    """With parity, what nobody asked for is as in the authors' program.

    Raises:
        click.UsageError: sources or superwords are asked for as well.
    """
    for name in ("mix", "superwords", "boundless"):
        if values[name]:
            raise click.UsageError(f"--parity and --{name} exclude each other: choose one")
    for name, value in (("ties", PARITY_TIES), ("min_frequency", PARITY_MIN_FREQUENCY)):
        if values.origins[name] is Origin.DEFAULT:
            values[name] = value


def _imply_sentencepiece(values: Values) -> None:
    """By default, text is cut into marked words; three roles are the first special tokens.

    Raises:
        click.UsageError: ``--unk`` and ``--unknown-token``, of one meaning here, differ.
    """
    from bpe.formats.cut_at_marks import WORDS

    cut = {"pattern": WORDS, "normalizer": ("prepend-mark", "mark-spaces")}
    given = any(values.origins[name] > Origin.PRESET and values[name] for name in options.OF_CUT)
    if not given and not values.get("counts"):
        values.update(dict.fromkeys(options.OF_CUT) | cut)
    unknown, role = values["unknown_token"], values.get("unk")
    if unknown and role and unknown != role:
        raise click.UsageError(f"--unk {role} and --unknown-token {unknown} differ: leave one out")
    values["unknown_token"] = unknown = unknown or role or "<unk>"
    roles = {"unk": unknown, "bos": values.get("bos") or "<s>", "eos": values.get("eos") or "</s>"}
    roles = {name: token for name, token in roles.items() if name in values.specs}
    special_tokens = dict.fromkeys((unknown, *roles.values(), *values["special_token"]))
    values.update(roles, special_token=tuple(special_tokens))


def _model(values: Values) -> Model:
    """Return the model that the options describe; ignore options of a preset that do not suit it.

    Raises:
        click.UsageError: the options do not go together.
    """
    from bpe.presets import model_of

    is_bpe = values["model"] == "bpe"
    of_characters = values["symbols"] == "characters" or not is_bpe
    for name, fits, partner in (
        ("symbols", is_bpe or values["symbols"] != "bytes", "--model bpe"),
        *((name, of_characters, "--symbols characters") for name in _OF_CHARACTERS),
        ("end_of_word", is_bpe, "--model bpe"),
    ):
        if not fits and values[name] is not None:
            if values[name] and values.origins[name] > Origin.PRESET:
                flag = f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{flag} {values[name]} needs {partner}")
            values.forget(name)
    return model_of(
        values["model"],
        symbols=values["symbols"] or ("bytes" if is_bpe else "characters"),
        end_of_word=values["end_of_word"],
        unknown_token=values["unknown_token"],
    )
