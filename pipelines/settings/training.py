"""The vocabulary that a training learns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.errors import ConfigError
from pipelines.option import (
    Group,
    advanced,
    check_declared,
    option,
)
from pipelines.settings.counting import prune_below

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpe.models import Model
    from pipelines.settings.corpus import PretokenSettings

# As the library has them (tests compare): `--help` does not wait for bpe.
TIES = ("bytes-min", "bytes-max", "gpt2-max", "id-min", "huggingface", "first-seen")
PAIR_COUNTS = ("overlapping", "disjoint")
MODELS = ("bpe", "wordpiece", "sentencepiece-bpe")
SYMBOLS = ("bytes", "characters")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The vocabulary to train; one of the two limits is given.

    Attributes:
        model: what a pre-token consists of; None for bytes. `ModelSettings` says it in options.
    """

    _GROUP: ClassVar[Group] = "Vocabulary"

    vocab_size: int | None = option(
        None,
        minimum=1,
        help="Maximum vocabulary size: special tokens, the 256 bytes (or all characters), and "
        "merges.",
    )
    max_merges: int | None = advanced(
        None,
        minimum=0,
        help="Maximum number of merges; instead of, or in addition to, --vocab-size.",
    )
    ties: str = option(
        "bytes-min",
        choices=TIES,
        metavar="RULE",
        help="Which of several equally frequent pairs to merge first. bytes-min, bytes-max: "
        "the smallest or greatest pair of byte strings; gpt2-max: the greatest pair of strings "
        "in GPT-2's printable alphabet; id-min: the pair with the smallest ids; huggingface: "
        "as Hugging Face's trainer does (the same merges if no special token occurs in the "
        "corpus); first-seen: the pair that occurs first in the corpus.",
    )
    pair_counts: str = advanced(
        "overlapping",
        choices=PAIR_COUNTS,
        metavar="HOW",
        help="How often a pair of equal symbols occurs in a row of them. overlapping: at every "
        "position (aaaa holds (a, a) three times); disjoint: as often as a merge joins it (two "
        "times), as the trainers of SuperBPE and BoundlessBPE count.",
    )
    min_frequency: int = option(1, minimum=1, help="Minimum count of a pair to merge.")
    prune_below: int = prune_below()
    extend: str | None = option(
        None,
        metavar="FILE",
        help="Extend this byte-level tokenizer: keep its ids and merges, and learn more. "
        "tokenizer.json, a .tiktoken file, or the name of a published vocabulary. Text is "
        "split as it splits it, and its special tokens stay. --vocab-size is the size of the "
        "result, --max-merges the number of new merges.",
    )
    superwords: int | None = option(
        None,
        minimum=1,
        help="Learn up to N superwords (SuperBPE): tokens that cross word boundaries, on top of "
        "the vocabulary of words, which --vocab-size and --max-merges describe.",
    )
    boundless: bool = option(
        False,
        help="Let superwords compete with merges of words (BoundlessBPE). "
        "The vocabulary keeps the size of that of words.",
    )
    prune_runs_below: int = advanced(
        1,
        needs="superwords | boundless",
        minimum=1,
        help="With --superwords and --boundless: drop runs, of which superwords are learnt, "
        "that occur fewer than N times in the corpus. The output records how much was dropped.",
    )
    model: Model | None = None
    initial_alphabet: tuple[str, ...] = advanced(
        (),
        several=False,
        metavar="CHARACTERS",
        help="Characters that become tokens even if the corpus does not contain them.",
    )

    character_coverage: float | None = advanced(
        None,
        kind="share",
        default_is="99.95% for sentencepiece-bpe, else 100%",
        help="Share of all characters that get tokens, the most frequent ones, such as 99.95% "
        "or 0.9995. The others become bytes (sentencepiece-bpe) or the unknown token.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        if self.superwords is not None and self.boundless:
            raise ConfigError(
                "`superwords` and `boundless` exclude each other: superwords come on top of the "
                "vocabulary of words, or compete with it: choose one"
            )
        if self.vocab_size is None and self.max_merges is None and not self.crosses_words:
            raise ConfigError("the training has no limit: give `vocab_size`, `max_merges` or both")

    @property
    def crosses_words(self) -> bool:
        """Whether superwords are learnt."""
        return self.superwords is not None or self.boundless

    @property
    def is_of_superwords(self) -> bool:
        """Whether nothing else is learnt: the words are those of the tokenizer extended."""
        return self.crosses_words and self.vocab_size is None and self.max_merges is None

    @property
    def words(self) -> TrainSettings:
        """The same without superwords, which must have a limit of its own."""
        return replace(self, superwords=None, boundless=False, prune_runs_below=1)

    def superwords_on(self, words: str) -> TrainSettings:
        """The same for superwords alone.

        Args:
            words: the file of the tokenizer of words, which is extended.
        """
        return TrainSettings(
            superwords=self.superwords,
            boundless=self.boundless,
            ties=self.ties,
            pair_counts=self.pair_counts,
            min_frequency=self.min_frequency,
            prune_runs_below=self.prune_runs_below,
            extend=words,
        )


PARITY_TIES, PARITY_MIN_FREQUENCY = "gpt2-max", 2  # of the authors' program; as bpe.parity has them


@dataclass(frozen=True, kw_only=True)
class ParitySettings:
    """Parity-aware training: directories of counts are groups, which choose merges in turn.

    Attributes:
        parity: whether they do.
    """

    _GROUP: ClassVar[Group] = "Vocabulary"

    parity: bool = option(
        False,
        help="Parity-aware BPE: each directory of --counts is a group, such as a language (in "
        "bpe run, each value of --group-by); at each step, the group that is compressed worst "
        f"chooses the pair. The defaults are then --ties {PARITY_TIES} and --min-frequency "
        f"{PARITY_MIN_FREQUENCY}.",
    )
    dev_counts: tuple[str, ...] = advanced(
        (),
        needs="parity",
        metavar="DIR",
        default_is="the group with the fewest bytes per token in the text to train on",
        help="Counts of held-out text of the same groups (--parity): the group with the most "
        "tokens there is compressed worst; repeatable.",
    )
    global_merges: int = advanced(
        0,
        needs="parity",
        minimum=0,
        help="First choose N merges by the counts of all groups together (--parity).",
    )
    window: int | None = advanced(
        None,
        needs="parity",
        minimum=1,
        default_is="none",
        help="Pass over a group that chose more than its share, times --alpha, of the last N "
        "merges (--parity); the authors use 100.",
    )
    alpha: float = advanced(
        2.0,
        minimum=1,
        help="How many times its share of the --window a group may choose.",
    )

    def __post_init__(self) -> None:
        check_declared(self)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What words consist of, before and after merging; None where the model has its own default."""

    _GROUP: ClassVar[Group] = "Vocabulary"

    model: str = option(
        "bpe",
        choices=MODELS,
        metavar="NAME",
        help="How pairs are chosen. bpe: the most frequent pair; wordpiece: the pair with the "
        "greatest count(ab) / (count(a) count(b)), starting from characters; "
        "sentencepiece-bpe: the most frequent pair of characters, with spaces as U+2581, byte "
        "fallback, and SentencePiece's order of ids.",
    )
    symbols: str | None = advanced(
        None,
        choices=SYMBOLS,
        metavar="KIND",
        default_is="bytes; characters for wordpiece and sentencepiece-bpe",
        help="Symbols of a word before the first merge: bytes or characters.",
    )
    end_of_word: str | None = advanced(
        None,
        metavar="TEXT",
        default_is="</w>",
        help="Symbol appended to the characters of each word; '' for none.",
    )
    unknown_token: str | None = advanced(
        None,
        metavar="TOKEN",
        default_is="none; [UNK] for wordpiece, <unk> for sentencepiece-bpe",
        help="Special token for characters that are not in the vocabulary (wordpiece: for "
        "entire words). Without it, such characters are errors.",
    )


CHAT_TEMPLATES = {
    "chatml": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}"
}
_TOKENS_OF_TEMPLATES = {"chatml": ("<|im_start|>", "<|im_end|>")}


def _role(what: str, declare: Callable[..., Any] = option) -> Any:
    """A special token by what models use it for."""
    help_ = f"Special token that {what}; recorded in tokenizer_config.json."
    return declare(None, metavar="TOKEN", help=help_)


def _adds(role: str, place: str) -> Any:
    help_ = (
        f"Let tokenizers and transformers add the --{role} token {place} each text. bpe encode "
        f"adds none unless --{'prepend' if role == 'bos' else 'append'}-token {role} asks for it."
    )
    return advanced(False, needs=role, help=help_)


@dataclass(frozen=True, kw_only=True)
class RoleSettings:
    """What a model uses special tokens for; each that is named here becomes a special token."""

    _GROUP: ClassVar[Group] = "Vocabulary"

    bos: str | None = _role("begins a text, such as '<s>'")
    eos: str | None = _role("ends a text, such as '<|endoftext|>'")
    pad: str | None = _role("fills the shorter texts of a batch", advanced)
    unk: str | None = _role("stands for what has no token", advanced)
    add_bos: bool = _adds("bos", "before")
    add_eos: bool = _adds("eos", "after")
    chat_template: str | None = advanced(
        None,
        metavar="FILE|NAME",
        help="Jinja template of a conversation, for transformers' apply_chat_template: a file, "
        f"or {', '.join(CHAT_TEMPLATES)}, whose tokens become special tokens.",
    )

    def __post_init__(self) -> None:
        check_declared(self)

    def with_tokens(self, pretokens: PretokenSettings) -> PretokenSettings:
        """The same with the tokens of these settings among the special tokens, behind the others.

        Raises:
            ConfigError: a token is empty.
        """
        tokens = [self.bos, self.eos, self.pad, self.unk]
        tokens += _TOKENS_OF_TEMPLATES.get(self.chat_template or "", ())
        named = [token for token in tokens if token is not None]
        if "" in named:
            raise ConfigError("the token of a role is empty: leave the role out")
        special = dict.fromkeys((*pretokens.special_tokens, *named))
        # As given where nothing is added, so that a duplicate is reported.
        if len(special) == len(pretokens.special_tokens):
            return pretokens
        return replace(pretokens, special_tokens=tuple(special))
