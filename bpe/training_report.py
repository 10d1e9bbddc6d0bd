"""The report of a training, ``training.json``: every merge with its count, and provenance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bpe._codec import from_jsonable, to_jsonable
from bpe.byte_alphabet import from_text, to_text
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.files import CHECKSUM, checksum_of, is_intact, write_atomically
from bpe.models import ByteLevel, Model, WordPiece, model_settings, read_model

if TYPE_CHECKING:
    from typing_extensions import Self

VERSION = 1
Stopped = Literal["vocabulary full", "no pair left", "merge limit"]


@dataclass(frozen=True, slots=True)
class TrainedMerge:
    """One step of training.

    Attributes:
        left: the left token, as bytes.
        right: the right token, as bytes.
        count: the count of the pair when it was merged, by the rule ``Training.pair_counts``.
        tokens_left: the length of the corpus in tokens after the merge.
    """

    left: bytes
    right: bytes
    count: int
    tokens_left: int


@dataclass(frozen=True, slots=True)
class WholeWord:
    """A pre-token that is never split and has become a token.

    Attributes:
        token: its string, as bytes.
        count: the number of its occurrences.
        merges_before: the number of merges before it; its id follows theirs.
    """

    token: bytes
    count: int
    merges_before: int


@dataclass(frozen=True, slots=True)
class MixedSource:
    """One of the counts that a tokenizer was trained on, with its share of the effective mix.

    Attributes:
        path: the path of the counts, as given.
        weight: the factor of the counts: ``3`` or ``1/2``.
        bytes_share: the share of the weighted bytes of all texts, from 0 to 1.
        pretokens_share: the share of the weighted pre-tokens.
        tokens_share: the share of the weighted tokens of another tokenizer; None unless shares are
            measured in its tokens.
    """

    path: str
    weight: str
    bytes_share: float
    pretokens_share: float
    tokens_share: float | None = None


@dataclass(frozen=True, slots=True)
class Extended:
    """The tokenizer that a training began with.

    Attributes:
        sha256: the SHA-256 of the tokenizer.json (``Tokenizer.sha256``).
        vocab_size: the number of tokens.
        merges: the number of merges, which are not among those of the training.
    """

    sha256: str
    vocab_size: int
    merges: int


@dataclass(frozen=True, slots=True)
class ParityGroup:
    """A group of a parity-aware training.

    Attributes:
        name: the name of the group.
        bytes: the size in bytes of all pre-tokens of the training.
        tokens: the size of these pre-tokens in tokens; None if the training was truncated.
        held_out_bytes: the size in bytes of the held-out pre-tokens; None without any.
        held_out_tokens: the size of the held-out pre-tokens in tokens; None without any.
    """

    name: str
    bytes: int
    tokens: int | None
    held_out_bytes: int | None = None
    held_out_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Parity:
    """The choices of groups in a parity-aware training (``bpe.train_parity``).

    Attributes:
        global_merges: the first merges, which all groups chose together, as requested.
        window: the number of last steps that limit a group; None without a limit.
        alpha: how many times its average share of the window a group could have.
        groups: the groups; of two that are compressed equally badly, the first one chooses.
        chosen_by: for each merge, the number of the group that chose it; None for all together.
    """

    global_merges: int
    window: int | None
    alpha: float
    groups: tuple[ParityGroup, ...]
    chosen_by: tuple[int | None, ...]

    @property
    def gini(self) -> float | None:
        """Return the Gini coefficient of tokens per byte: 0 if all groups are compressed alike.

        None if the training was truncated.
        """
        return _gini([(one.tokens, one.bytes) for one in self.groups])

    @property
    def held_out_gini(self) -> float | None:
        """That of the tokens of their held-out texts; None without these, or if truncated."""
        return _gini([(one.held_out_tokens, 1) for one in self.groups])

    def truncated(self, merges: int) -> Parity:
        """That of the first merges alone, after which the length of each group is not known."""
        if merges == len(self.chosen_by):
            return self
        groups = tuple(replace(one, tokens=None, held_out_tokens=None) for one in self.groups)
        return replace(self, groups=groups, chosen_by=self.chosen_by[:merges])


def _gini(costs: Sequence[tuple[int | None, int]]) -> float | None:
    """Return the Gini coefficient of quotients; None if one is not known."""
    shares = [cost / size for cost, size in costs if cost is not None and size]
    if not shares or len(shares) < len(costs):
        return None
    ranked = enumerate(sorted(shares), 1)
    count = len(shares)
    return sum((2 * rank - count - 1) * share for rank, share in ranked) / (count * sum(shares))


@dataclass(frozen=True, kw_only=True)
class _Record:
    """Fields that the records of words and of superwords share.

    Attributes:
        ties: the tie rule.
        pair_counts: how a pair of equal symbols was counted in a row of them, ``overlapping`` or
            ``disjoint`` (see :func:`bpe.train`).
        min_frequency: rarer pairs were not merged.
        prune_below: rarer pre-tokens, or runs, were dropped.
        stopped: why training ended.
        initial_tokens: the length of the corpus before the first merge: in single symbols, or in
            tokens of the tokenizer that training began with.
        counts: where the counts come from: pre-tokenizer, special tokens, totals.
        pruned: what was dropped for being rare, and ``first_affected_merge``: the number (from 0)
            of the first merge that could be another one had it not been dropped, which is that of
            the merge after the last if training could have gone on, and None where neither is
            so. None where nothing was to be dropped.
        repeated: the numbers of the merges that made an existing string, and so no new token.
        tied: the numbers of the merges that the tie rule decided; None in files that do not say so,
            as earlier ones for ``huggingface``.
        merges: the merges in the order of their ranks.
    """

    ties: str
    pair_counts: str = "overlapping"
    min_frequency: int
    prune_below: int
    stopped: Stopped
    initial_tokens: int
    counts: Mapping[str, Any]
    pruned: Mapping[str, int | None] | None
    repeated: tuple[int, ...] = ()
    tied: tuple[int, ...] | None = None
    merges: tuple[TrainedMerge, ...]

    @property
    def tokens(self) -> int:
        """Return the length of the corpus in tokens after all merges."""
        return self.merges[-1].tokens_left if self.merges else self.initial_tokens

    def _first_merges(self, merges: int, **changes: Any) -> Self:
        """Return the record of a training that ends after so many merges."""
        return replace(
            self,
            stopped="vocabulary full",
            pruned=_pruned_before(self.pruned, merges),
            repeated=tuple(number for number in self.repeated if number < merges),
            tied=self.tied and tuple(number for number in self.tied if number < merges),
            merges=self.merges[:merges],
            **changes,
        )

    def __post_init__(self) -> None:
        for name in ("counts", "pruned", "cut"):
            if (value := getattr(self, name, None)) is not None:
                vars(self)[name] = _frozen(value)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: dict(value) if isinstance(value, MappingProxyType) else value
            for name, value in vars(self).items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()


@dataclass(frozen=True, kw_only=True)
class SuperwordTraining(_Record):
    """The training of superwords, after the merges inside pre-tokens.

    The corpus here is the runs that were trained on: adjacent pre-tokens, each of which is one
    token (see `bpe.train_superwords`). The counts of words are taken as they are.

    Attributes:
        superwords: the requested number; None if superwords competed with the merges of words.
        boundless: whether superwords competed with the merges of words.
        steps_before: for each merge, the number of tokens of words (merges, and pre-tokens that
            are never split) made before it; empty if all were made before.
        cut: what the cuts of long runs may have changed, and ``first_affected_merge``; None if no
            run was cut. If runs were dropped too, the number is that of both.
    """

    superwords: int | None
    boundless: bool
    steps_before: tuple[int, ...] = ()
    cut: Mapping[str, int | None] | None = None

    @property
    def new(self) -> list[int]:
        """Return the numbers of the merges that made a token."""
        return sorted({*range(len(self.merges))} - {*self.repeated})

    @property
    def vocab_size(self) -> int:
        """Return the number of tokens that the merges made."""
        return len(self.merges) - len(self.repeated)

    def first(self, vocab_size: int) -> SuperwordTraining:
        """Return the report of training that makes no more than so many tokens."""
        merges = self.new[vocab_size - 1] + 1 if vocab_size else 0
        cut = _pruned_before(self.cut, merges)
        return self._first_merges(merges, superwords=vocab_size, cut=cut)


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A merge, or a pre-token that is never split and has become a token.

    Attributes:
        token: the string of the token.
        count: the count by which it was chosen.
        is_new: False if a merge made a string that was there before.
        tokens_left: the length of the corpus after the step.
        merges: the number of merges up to this step.
        whole_words: the number of pre-tokens that are never split and became tokens up to this
            step.
    """

    token: bytes
    count: int
    is_new: bool
    tokens_left: int
    merges: int
    whole_words: int


class CurvePoint(NamedTuple):
    """Compression of the training corpus by a vocabulary of one size.

    Attributes:
        vocab_size: tokens in the vocabulary.
        tokens: the length of the corpus.
        tokens_per_word: tokens per word (pre-token), its end included if the model has one; 0.0
            for an empty corpus.
        bytes_per_token: bytes of the corpus per token; 0.0 for an empty corpus.
    """

    vocab_size: int
    tokens: int
    tokens_per_word: float
    bytes_per_token: float


@dataclass(frozen=True, kw_only=True)
class Training(_Record):
    """The record of a training: ``training.json``.

    The corpus here is the words that were trained on, without pruned pre-tokens and without those
    that are never split.

    Attributes:
        initial_words: the length of the corpus in words.
        initial_bytes: the length of the corpus in bytes.
        initial_vocab: tokens before the first merge: special tokens and the alphabet, or those of
            the tokenizer that was extended.
        vocab_size: as requested, or None.
        max_merges: as requested, or None.
        character_coverage: the share of characters that have tokens, as a fraction.
        model: the model of the tokenizer.
        whole_words: the pre-tokens that are never split and have become tokens.
        mix: the sets of counts, with weights and shares; empty for one set without a weight.
        extends: the tokenizer that was extended; None if training began with the alphabet.
        parity: the groups that chose the merges; None for a training without groups.
        superwords: the training of merges across pre-tokens; None without superwords.
    """

    model: Model
    vocab_size: int | None
    max_merges: int | None
    initial_vocab: int
    initial_words: int
    initial_bytes: int
    mix: tuple[MixedSource, ...] = ()
    extends: Extended | None = None
    character_coverage: str = "1"
    whole_words: tuple[WholeWord, ...]
    superwords: SuperwordTraining | None = None
    parity: Parity | None = None

    @property
    def first_rank(self) -> int:
        """Return the rank of the first merge; merges of an extended tokenizer come before."""
        return self.extends.merges if self.extends is not None else 0

    @property
    def bytes_per_token(self) -> float | None:
        """Of the corpus at the end, with superwords; None if it is empty, or they hide it.

        That is where they competed with words, or were not learnt of all runs of the same corpus.
        """
        tokens = self.tokens
        if self.superwords is not None:
            if not self._is_of_all_runs:
                return None
            tokens += self.superwords.tokens - self.superwords.initial_tokens
        return self.initial_bytes / tokens if tokens else None

    @property
    def _is_of_all_runs(self) -> bool:
        """True if superwords are on top of all words, and of all runs of the same corpus.

        Else their ``tokens_left`` does not say how long the corpus is.
        """
        learnt = self.superwords
        if learnt is None or learnt.boundless or learnt.pruned is not None:
            return False
        if self.pruned is not None and self.pruned["distinct_pretokens"]:
            return False  # `tokens` leaves out these pre-tokens, runs hold them
        names = ("documents", "bytes", "scale")
        same = all(self.counts.get(name) == learnt.counts.get(name) for name in names)
        return same and learnt.counts.get("max_run") is None and self.initial_words > 0

    @property
    def score(self) -> str:
        """Return the score that ranks pairs: ``count``, or the score of ``wordpiece``."""
        return "wordpiece" if isinstance(self.model, WordPiece) else "count"

    def curve(self) -> list[CurvePoint]:
        """Return the compression at each vocabulary size, from the alphabet alone to all tokens.

        Each point is what training with that ``vocab_size`` ends with (``Tokenizer.truncated``).
        If superwords were learnt on top of words, from all runs of the same corpus, points for them
        follow; otherwise the curve ends with words.
        """
        points = [self._point(size, tokens) for size, tokens, _, _ in self._sizes()]
        learnt, words = self.superwords, points[-1].vocab_size
        if learnt is not None and self._is_of_all_runs:
            between = self.tokens - learnt.initial_tokens  # of what is in no run
            for size, number in enumerate(learnt.new, start=words + 1):
                points.append(self._point(size, between + learnt.merges[number].tokens_left))
        return points

    def _point(self, size: int, tokens: int) -> CurvePoint:
        return CurvePoint(
            size,
            tokens,
            tokens / self.initial_words if self.initial_words else 0.0,
            self.initial_bytes / tokens if tokens else 0.0,
        )

    def truncated(self, vocab_size: int) -> Training:
        """Return the report of training with this smaller ``vocab_size``.

        Superwords go first.

        Raises:
            TokenizerError: the size has no room for special tokens and alphabet, or exceeds that
                of the vocabulary; or superwords competed with words.
        """
        if self.superwords is not None and self.superwords.boundless:
            raise TokenizerError(
                "superwords competed with words: which of them a smaller vocabulary would have is "
                "not recorded; train it"
            )
        sizes = {size: ends for size, _, *ends in self._sizes()}
        words = max(sizes)
        most = words + (self.superwords.vocab_size if self.superwords is not None else 0)
        if self.superwords is not None and words < vocab_size <= most:
            return replace(self, superwords=self.superwords.first(vocab_size - words))
        if vocab_size not in sizes:
            raise TokenizerError(
                f"`vocab_size` {vocab_size!r:.60} is not between {self.initial_vocab:,} (special "
                f"tokens and alphabet) and {most:,} (all tokens)"
            )
        return replace(self.first(*sizes[vocab_size]), vocab_size=vocab_size)

    def first(self, merges: int, whole_words: int) -> Training:
        """Return the report of a training that ends after so many merges and whole words."""
        return self._first_merges(
            merges,
            whole_words=self.whole_words[:whole_words],
            parity=self.parity and self.parity.truncated(merges),
            superwords=None,
        )

    def steps(self) -> Iterator[TrainingStep]:
        """Yield the merges, and the pre-tokens that became tokens, in the order of training."""
        tokens, words, repeated = self.initial_tokens, 0, set(self.repeated)
        prefix = self.model.prefix.encode()
        for number, merge in enumerate([*self.merges, None]):
            while words < len(self.whole_words) and self.whole_words[words].merges_before == number:
                word = self.whole_words[words]
                words += 1
                yield TrainingStep(word.token, word.count, True, tokens, number, words)
            if merge is not None:
                token, tokens = merge.left + merge.right.removeprefix(prefix), merge.tokens_left
                is_new = number not in repeated
                yield TrainingStep(token, merge.count, is_new, tokens, number + 1, words)

    def _sizes(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield each vocabulary size, and then: tokens left, merges, whole words."""
        yield self.initial_vocab, self.initial_tokens, 0, 0
        new = (step for step in self.steps() if step.is_new)
        for size, step in enumerate(new, start=self.initial_vocab + 1):
            yield size, step.tokens_left, step.merges, step.whole_words

    def to_json(self) -> str:
        """Return the text of ``training.json``; equal trainings give equal texts."""
        spell = to_text if isinstance(self.model, ByteLevel) else bytes.decode
        values = {"version": VERSION, "model": {}, "score": self.score}
        values |= to_jsonable(replace(self, merges=()), text=spell)
        values["model"] = model_settings(self.model)
        # Tens of thousands: the codec, which asks for the type of each value, takes longer.
        values["merges"] = [
            {
                "left": spell(one.left),
                "right": spell(one.right),
                "count": one.count,
                "tokens_left": one.tokens_left,
            }
            for one in self.merges
        ]
        for name in ("superwords", "parity"):
            if values[name] is None:
                del values[name]
        checksum = checksum_of(values)
        merges = values.pop("merges")
        return _object({**values, CHECKSUM: checksum, "merges": merges}) + "\n"

    def save(self, path: str | Path) -> None:
        """Write ``training.json``, atomically."""
        write_atomically(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | Path) -> Training:
        """Read ``training.json``.

        Raises:
            TokenizerFileError: the file is not what :meth:`save` writes; names file and entry.
        """
        return cls.read(Path(path).read_bytes(), where=str(path))

    @classmethod
    def read(cls, data: bytes, *, where: str) -> Training:
        """Return the same from what is in the file, of which ``where`` is the name."""
        try:
            fields = from_jsonable(dict[str, Any], json.loads(data))
            intact = is_intact(fields)
            training = cls._from_fields(fields)
        except TokenizerFileError as error:
            raise TokenizerFileError(f"{where}: {error}") from None
        except (ValueError, RecursionError) as error:
            message = f"{where}: not a training.json of beam-bpe: {error}"
            raise TokenizerFileError(message) from error
        if not intact:
            raise TokenizerFileError(
                f"{where}: checksum mismatch: the file is corrupt or was edited; train again"
            )
        return training

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Training:
        if (version := fields.get("version")) != VERSION:
            raise TokenizerFileError(
                f"not a training.json that this release reads: version {version!r:.60}, expected "
                f"{VERSION}"
            )
        score, model = fields.get("score"), read_model(fields.get("model"))
        spelt = from_text if isinstance(model, ByteLevel) else str.encode
        rest = {name: fields[name] for name in fields if name not in {"version", "score", CHECKSUM}}
        training = from_jsonable(cls, {**rest, "model": model}, exact=True, data=spelt)
        if score != training.score:
            raise ValueError(f"score {score!r:.60} is not that of the model")
        return training


def _object(values: Mapping[str, Any], indent: str = "") -> str:
    """Return the text of a JSON object; numbers share one line, and each merge has a line."""
    inner = indent + "  "
    lines = []
    for name, value in values.items():
        if name == "superwords" and value is not None and not isinstance(value, int):
            text = _object(value, inner)
        elif name == "merges" and isinstance(value, list):
            # Between two merges only: in a string the quotation mark before `left` is escaped, and
            # one that ends a string is followed by a comma.
            first = '{"left": '
            rows = json.dumps(value, ensure_ascii=False)[1:-1]
            rows = rows.replace(f"}}, {first}", f"}},\n{inner}  {first}")
            text = f"[\n{inner}  {rows}\n{inner}]"
        elif name in ("tied", "steps_before", "parity"):
            text = json.dumps(value, ensure_ascii=False)
        else:
            text = json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n" + inner)
        lines.append(f"{inner}{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _pruned_before(
    pruned: Mapping[str, int | None] | None, merges: int
) -> Mapping[str, int | None] | None:
    """Return what pruning, or cuts of runs, could have changed in the first merges."""
    if pruned is None:
        return None
    affected = pruned["first_affected_merge"]
    first = affected if affected is not None and affected < merges else None
    return {**pruned, "first_affected_merge": first}


def _frozen(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an immutable copy of settings, with tuples for lists."""
    return MappingProxyType(
        {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in settings.items()
        }
    )
