"""The vocabulary that a training learns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bpe.names import PAIR_COUNTS, TIES
from pipelines.errors import ConfigError
from pipelines.option import Natural, Positive, Settings, Share, advanced, option
from pipelines.settings.counting import PruneSettings

if TYPE_CHECKING:
    from bpe.models import Model
    from pipelines.settings.corpus import PretokenSettings

MODELS = ("bpe", "wordpiece", "sentencepiece-bpe")
SYMBOLS = ("bytes", "characters")


@dataclass(frozen=True, kw_only=True)
class TrainSettings(PruneSettings, group="Vocabulary"):
    """The vocabulary to train; one of the two limits is given.

    Attributes:
        model: what a pre-token consists of; None for bytes. `ModelSettings` says it in options.
        vocab_size: Maximum vocabulary size: special tokens, the 256 bytes (or all characters),
            and merges.
        max_merges: Maximum number of merges; with or without --vocab-size.
        ties: Which of several equally frequent pairs to merge first. bytes-min, bytes-max: the
            smallest or greatest pair of byte strings; gpt2-max: the greatest in GPT-2's printable
            alphabet; id-min: the smallest ids; huggingface: as Hugging Face's trainer; first-seen:
            the first in the corpus.
        pair_counts: How often aaaa holds the pair (a, a). overlapping: three times; disjoint: two
            times, as a merge joins it.
        min_frequency: Minimum count of a pair to merge.
        extend: Extend this byte-level tokenizer. A file or a published vocabulary: its ids and
            merges are kept, and more are learned. --vocab-size is the size of the result,
            --max-merges the number of new merges.
        superwords: Learn up to N superwords (SuperBPE): tokens that cross word boundaries, on top
            of the vocabulary of words.
        boundless: Superwords compete with merges of words (BoundlessBPE). The vocabulary is as
            large as without superwords.
        prune_runs_below: With --superwords and --boundless: drop runs that occur fewer than N
            times. The output records the loss.
        initial_alphabet: Characters that become tokens even if the corpus does not contain
            them.
        character_coverage: Share of the characters of the corpus that get tokens, the most frequent
            first. The others become bytes (sentencepiece-bpe) or the unknown token.
    """

    vocab_size: Positive | None = option(None)
    max_merges: Natural | None = advanced(None)
    ties: str = option("bytes-min", choices=TIES, metavar="RULE")
    pair_counts: str = advanced("overlapping", choices=PAIR_COUNTS, metavar="HOW")
    min_frequency: Positive = option(1)
    extend: str | None = option(None, metavar="FILE")
    superwords: Positive | None = option(None)
    boundless: bool = option(False, excludes=("superwords",))
    prune_runs_below: Positive = advanced(1, needs="superwords | boundless")
    model: Model | None = None
    initial_alphabet: tuple[str, ...] = advanced((), repeatable=False, metavar="CHARACTERS")

    character_coverage: Share | None = advanced(
        None, default_is="99.95% for sentencepiece-bpe, else 100%"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.vocab_size is None and self.max_merges is None and not self.crosses_words:
            raise ConfigError("the training has no limit: give `vocab_size`, `max_merges` or both")

    @property
    def crosses_words(self) -> bool:
        """True if superwords are learnt."""
        return self.superwords is not None or self.boundless

    @property
    def is_of_superwords(self) -> bool:
        """True if nothing else is learnt: the words are those of the tokenizer extended."""
        return self.crosses_words and self.vocab_size is None and self.max_merges is None

    @property
    def limits(self) -> dict[str, Any]:
        """Return the arguments of a training of words that say which pairs merge, and how many."""
        names = ("vocab_size", "max_merges", "ties", "pair_counts", "min_frequency", "prune_below")
        return {name: getattr(self, name) for name in names}

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the settings of `bpe.train`, other than special tokens and what it extends."""
        names = ("initial_alphabet", "character_coverage", *(["model"] if self.model else []))
        return {**self.limits, **{name: getattr(self, name) for name in names}}

    @property
    def words(self) -> TrainSettings:
        """Return the same without superwords, which must have a limit of its own."""
        return replace(self, superwords=None, boundless=False, prune_runs_below=1)

    def superwords_on(self, words: str) -> TrainSettings:
        """Return the settings of the training of superwords that follows.

        Args:
            words: the file of the tokenizer of words, which is extended.
        """
        names = ("superwords", "boundless", "ties", "pair_counts", "min_frequency")
        kept = {name: getattr(self, name) for name in (*names, "prune_runs_below")}
        return TrainSettings(**kept, extend=words)


PARITY_TIES, PARITY_MIN_FREQUENCY = "gpt2-max", 2  # of the authors' program; as bpe.parity has them


@dataclass(frozen=True, kw_only=True)
class ParitySettings(Settings, group="Vocabulary"):
    """Parity-aware training: directories of counts are groups, which choose merges in turn.

    Attributes:
        parity: Parity-aware BPE: the group that is compressed worst chooses the next pair. A group
            is a value of --group-by, or a directory of --counts. The defaults are then --ties
            gpt2-max and --min-frequency 2.
        dev_counts: With --parity: counts of held-out text of the same groups; repeatable. The group
            with the most tokens in this text is compressed worst.
        global_merges: With --parity: first choose N merges by the counts of all groups together.
        window: With --parity: pass over a group that chose more than --alpha times its share of the
            last N merges. The authors use 100.
        alpha: With --window: the most that a group may choose of the last merges, in shares: 2 is
            twice its share.
    """

    parity: bool = option(False, needs="counts | group_by")
    dev_counts: tuple[str, ...] = advanced(
        (),
        needs="parity",
        metavar="DIR",
        default_is="the counts to train on",
    )
    global_merges: Natural = advanced(0, needs="parity")
    window: Positive | None = advanced(None, needs="parity", default_is="none")
    alpha: float = advanced(2.0, needs="window", minimum=1)


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Settings, group="Vocabulary"):
    """The symbols of words, before and after merging; None for the model's own default.

    Attributes:
        model: How pairs are chosen. bpe: the most frequent pair; wordpiece: the pair of characters
            with the greatest count(ab) / (count(a) count(b)); sentencepiece-bpe: the most frequent
            pair of characters, with spaces as U+2581 and byte fallback.
        symbols: Symbols of a word before the first merge: bytes or characters.
        end_of_word: Symbol appended to the characters of each word; '' for none.
        unknown_token: Special token for characters that are not in the vocabulary (wordpiece:
            for entire words). Without it, such characters are errors.
    """

    model: str = option("bpe", choices=MODELS, metavar="NAME")
    symbols: str | None = advanced(
        None,
        choices=SYMBOLS,
        metavar="KIND",
        default_is="bytes; characters for wordpiece and sentencepiece-bpe",
    )
    end_of_word: str | None = advanced(None, metavar="TEXT", default_is="</w>")
    unknown_token: str | None = advanced(
        None, metavar="TOKEN", default_is="none; [UNK] for wordpiece, <unk> for sentencepiece-bpe"
    )


CHAT_TEMPLATES = {
    "chatml": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}"
}
_TOKENS_OF_TEMPLATES = {"chatml": ("<|im_start|>", "<|im_end|>")}


@dataclass(frozen=True, kw_only=True)
class RoleSettings(Settings, group="Vocabulary"):
    """The roles of special tokens; each that is named here becomes a special token.

    Attributes:
        bos: Special token that begins a text, such as '<s>'.
        eos: Special token that ends a text, such as '<|endoftext|>'.
        pad: Special token that fills the shorter texts of a batch.
        unk: Special token for characters without a token.
        add_bos: Let Hugging Face's libraries add the --bos token before each text. bpe encode adds
            it only with --prepend-token bos.
        add_eos: Let Hugging Face's libraries add the --eos token after each text. bpe encode adds
            it only with --append-token eos.
        chat_template: Jinja template of a conversation, for transformers' apply_chat_template: a
            file, or chatml, whose tokens become special tokens.
    """

    bos: str | None = option(None, metavar="TOKEN")
    eos: str | None = option(None, metavar="TOKEN")
    pad: str | None = advanced(None, metavar="TOKEN")
    unk: str | None = advanced(None, metavar="TOKEN")
    add_bos: bool = advanced(False, needs="bos")
    add_eos: bool = advanced(False, needs="eos")
    chat_template: str | None = advanced(None, metavar="FILE|NAME")

    def with_tokens(self, pretokens: PretokenSettings) -> PretokenSettings:
        """Return the same with the tokens of these settings added to the special tokens."""
        tokens = [self.bos, self.eos, self.pad, self.unk]
        tokens += _TOKENS_OF_TEMPLATES.get(self.chat_template or "", ())
        named = filter(None, tokens)
        special = dict.fromkeys((*pretokens.special_tokens, *named))
        # As given where nothing is added, so that a duplicate is reported.
        if len(special) == len(pretokens.special_tokens):
            return pretokens
        return replace(pretokens, special_tokens=tuple(special))
