"""What the report says of a tokenizer and of its training."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from bpe.models import ByteLevel, CharacterLevel, WordPiece
from pipelines.report import charts
from pipelines.report.page import DASH, Section, percent, section, tokens
from pipelines.report.writing_systems import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe import Tokenizer
    from bpe.training_report import TrainedMerge, Training
    from pipelines.report.material import Material

_LONGEST = 30
_EXAMPLES = 12
_WIDEST = 24  # bytes: longer tokens share a bar
_WORTH = 0.05  # of the tokens, which a vocabulary twice as large should save


def plain(tokenizer: Tokenizer, data: bytes) -> bytes:
    """A token without what marks the beginning or the end of words."""
    model = tokenizer.model
    if isinstance(model, CharacterLevel):
        return data.removesuffix(model.end_of_word.encode()) if model.end_of_word else data
    return data.removeprefix(model.prefix.encode()) if isinstance(model, WordPiece) else data


def ordinary(tokenizer: Tokenizer) -> dict[int, bytes]:
    """The tokens by id without special and added ones."""
    whole = {*tokenizer.special_tokens.values(), *tokenizer.added_tokens.values()}
    return {
        id_: data
        for id_, data in enumerate(tokenizer.tokens)
        if data is not None and id_ not in whole
    }


def compression(material: Material) -> Section | None:
    """The compression of every smaller vocabulary, and what each doubling of it saves."""
    if (training := material.training) is None:
        return None
    points = [(point.vocab_size, point.bytes_per_token) for point in training.curve()]
    sizes = [training.initial_vocab + len(training.merges)]
    while sizes[-1] // 2 > training.initial_vocab:
        sizes.append(sizes[-1] // 2)
    doubled = training.curve(reversed(sizes)) if training.tokens else []
    saved = [1 - after.tokens / before.tokens for before, after in pairwise(doubled)]
    pairs = zip(doubled[:-1], saved, strict=True)
    return section(
        "compression",
        "Compression",
        training=training,
        merges=len(training.merges),
        curve=charts.line(
            "Compression by vocabulary size",
            points=points,
            axes=("tokens in the vocabulary", "bytes of text per token"),
            logarithmic=(points[-1][0] > 20 * points[0][0], False),
            spell_y=lambda value: f"{value:.3f}",
        ),
        saved=saved,
        worth=_WORTH,
        enough=next((point.vocab_size for point, part in pairs if part < _WORTH), None),
        doublings=[
            (point.vocab_size, point.tokens, percent(part))
            for point, part in zip(doubled, [None, *saved], strict=False)
        ],
    )


def superwords(material: Material) -> Section | None:
    """The tokens that cross words: how many, and what they save in the runs they were learnt of."""
    learnt = material.training and material.training.superwords
    tokenizer, encoded = material.tokenizer, material.encoded
    if learnt is None or tokenizer is None:
        return None
    merges, before = learnt.merges, learnt.initial_tokens
    longest = sorted(merges, key=lambda one: (-len(one.left + one.right), one.left, one.right))
    frequent = sorted(merges, key=lambda one: (-one.count, one.left, one.right))
    ids = {result for _, _, result in tokenizer.superwords}
    return section(
        "superwords",
        "Superwords",
        learnt=learnt,
        merges=len(merges),
        fewer=1 - learnt.tokens / max(before, 1),
        curve=charts.line(
            "Tokens of the runs by number of superwords",
            points=[(0, before), *((n + 1, one.tokens_left) for n, one in enumerate(merges))],
            axes=("superwords", "tokens of all runs"),
        ),
        frequent=_made_of(frequent),
        longest=_made_of(longest),
        used=encoded and encoded.facts.most_frequent(ids, tokenizer, _LONGEST),
    )


def _made_of(merges: Sequence[TrainedMerge]) -> list[tuple[object, ...]]:
    return [
        (one.left + one.right, tokens((one.left, one.right)), one.count)
        for one in merges[:_LONGEST]
    ]


def merge_counts(material: Material) -> Section | None:
    """How often each merge's pair occurred."""
    if (training := material.training) is None or not training.merges:
        return None
    numbered = [*enumerate(training.merges, 1)]
    last = max(_EXAMPLES, len(numbered) - _EXAMPLES)
    return section(
        "merges",
        "What was joined",
        curve=charts.line(
            "Occurrences by merge",
            points=[(number, merge.count) for number, merge in numbered],
            axes=("number of the merge", "occurrences of the pair"),
            logarithmic=(True, True),
        ),
        rows=[
            (number, one.left, one.right, one.count, one.tokens_left)
            for number, one in (*numbered[:_EXAMPLES], *numbered[last:])
        ],
    )


def parity(material: Material) -> Section | None:
    """How alike the groups of a parity-aware training are compressed."""
    training = material.training
    if training is None or (parity := training.parity) is None:
        return None
    rows = []
    for number, group in enumerate(parity.groups):
        row: list[object] = [group.name, parity.chosen_by.count(number)]
        row += [group.bytes, *_compressed(group.bytes, group.tokens)]
        if group.held_out_bytes is not None:
            row += [group.held_out_bytes, *_compressed(group.held_out_bytes, group.held_out_tokens)]
        rows.append(row)
    return section(
        "parity",
        "Groups",
        rows=rows,
        has_held_out=parity.groups[0].held_out_bytes is not None,
        parity=parity,
        together=parity.chosen_by.count(None),
    )


def _compressed(size: int | None, tokens: int | None) -> tuple[object, object]:
    if not size or not tokens:
        return DASH, DASH
    return tokens, f"{size / tokens:.3f}"


def ties(material: Material) -> Section | None:
    """What the tie rule decided."""
    if (training := material.training) is None or not training.merges:
        return None
    merges, examples, half = training.merges, proven_ties(training), _EXAMPLES // 2

    def pair(number: int) -> object:
        return tokens((merges[number].left, merges[number].right), " + ")

    return section(
        "ties",
        "What the tie rule decided",
        training=training,
        decided=len(examples if training.tied is None else training.tied),
        merges=len(merges),
        rows=[
            (number + 1, pair(number), pair(number + 1), merges[number].count)
            for number in (*examples[:half], *examples[half:][-half:])
        ],
    )


def proven_ties(training: Training) -> list[int]:
    """The numbers, from 0, of the merges of which the next one proves that a tie rule chose them.

    Where merge k + 1 has the count of merge k, and neither of its symbols is the one that merge k
    made, its pair was there before merge k, and as often: merge k can only take occurrences from
    it, and no pair occurred more often. (A rival that lost some of its occurrences by merge k is
    not found so: ``Training.tied`` has all.) Of WordPiece there are none: its scores are not known.
    """
    if training.score != "count":
        return []
    repeated = set(training.repeated)  # these can bring back pairs of other symbols
    return [
        number
        for number, (chosen, after) in enumerate(pairwise(training.merges))
        if after.count == chosen.count
        and number not in repeated
        and chosen.left + chosen.right not in (after.left, after.right)
    ]


def lengths(material: Material) -> Section | None:
    """How long tokens are, and the longest ones."""
    if (tokenizer := material.tokenizer) is None:
        return None
    facts = material.encoded_facts
    ids = ordinary(tokenizer)
    sizes = Counter(min(len(data), _WIDEST) for data in ids.values())
    used: Counter[int] = Counter()
    if facts is not None:
        for id_, data in ids.items():
            used[min(len(data), _WIDEST)] += int(facts.tokens[id_])
    bars = range(1, max(sizes, default=0) + 1)
    labels = [f"{n}+" if n == _WIDEST else str(n) for n in bars]
    longest = sorted(ids.items(), key=lambda item: (-len(item[1]), item[0]))[:_LONGEST]
    return section(
        "lengths",
        "Token lengths",
        has_corpus=facts is not None,
        bars=charts.bars(
            "Token lengths",
            values=[
                (label, 100 * sizes[n] / max(len(ids), 1))
                for label, n in zip(labels, bars, strict=True)
            ],
            axes=("bytes of the token", "percent"),
            second=None if facts is None else [100 * used[n] / max(used.total(), 1) for n in bars],
            legend=("of the vocabulary", "of the corpus"),
        ),
        longest=[
            (data, id_, len(data), *([] if facts is None else [int(facts.tokens[id_])]))
            for id_, data in longest
        ],
    )


def kinds(material: Material) -> Section | None:
    """What scripts the vocabulary covers, and how well."""
    if (tokenizer := material.tokenizer) is None:
        return None
    facts = material.encoded_facts
    tokens: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    times: Counter[str] = Counter()
    bytes_: Counter[str] = Counter()
    for id_, data in ordinary(tokenizer).items():
        text = plain(tokenizer, data)
        kind = kind_of(text)
        tokens[kind] += 1
        if facts is not None:
            count = int(facts.tokens[id_])
            unused[kind] += count == 0
            times[kind] += count
            bytes_[kind] += count * len(text)
    return section(
        "scripts",
        "Scripts",
        is_of_bytes=isinstance(tokenizer.model, ByteLevel),
        has_corpus=facts is not None,
        kinds=[
            {
                "kind": kind,
                "tokens": tokens[kind],
                "share": tokens[kind] / tokens.total(),
                "unused": unused[kind],
                "used": times[kind] / max(times.total(), 1),
                "per_token": bytes_[kind] / times[kind] if times[kind] else None,
            }
            for kind in sorted(tokens, key=lambda kind: (-times[kind], -tokens[kind], kind))
        ],
    )


def special(material: Material) -> Section | None:
    """The special and added tokens, if there are any."""
    if (tokenizer := material.tokenizer) is None:
        return None
    rows = [
        (text.encode(), id_, kind)
        for kind, ids in (("special", tokenizer.special_tokens), ("added", tokenizer.added_tokens))
        for text, id_ in ids.items()
    ]
    return section("special", "Special tokens", rows=rows) if rows else None


def frequencies(material: Material) -> Section | None:
    """How often tokens occur in an encoded corpus; the most frequent and the rarest."""
    tokenizer, encoded = material.tokenizer, material.encoded
    if tokenizer is None or encoded is None:
        return None
    facts = encoded.facts
    counts = sorted((int(n) for n in facts.tokens if n > 0), reverse=True)
    half, sum_, total = 0, 0, sum(counts)
    while 2 * sum_ < total:
        half, sum_ = half + 1, sum_ + counts[half]
    ids = ordinary(tokenizer)
    rows = facts.most_frequent(ids, tokenizer, len(ids))
    used = [row for row in rows if row[2]]
    unused = rows[len(used) :]
    return section(
        "frequencies",
        "Token frequencies",
        curve=charts.line(
            "Occurrences of tokens",
            points=[(rank, count) for rank, count in enumerate(counts, 1)],
            axes=("rank of the token", "occurrences"),
            logarithmic=(True, True),
        ),
        half=half,
        sampled=encoded.is_sampled,
        some=len(ids) < len(tokenizer),
        of=len(ids),
        never=len(unused),
        frequent=used[:_LONGEST],
        rarest=used[::-1][:_LONGEST],
        unused=unused[:_LONGEST],
    )
