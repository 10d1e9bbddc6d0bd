"""Turn shares of counts in a training into weights, and weights into shares."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from bpe.diff import fit
from bpe.models import CharacterLevel
from bpe.training_report import MixedSource
from pipelines.count.directory import load_counts, read_counts
from pipelines.errors import ConfigError, InputError
from pipelines.option import percent
from pipelines.output.names import SOURCE, group_folder
from pipelines.settings import CountsInput
from pipelines.storage import join
from pipelines.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.pretokenizer import Pretokenizer
    from pipelines.settings import ShareOf


def counts_of_sources(directory: str, shares: Mapping[str, Fraction]) -> tuple[CountsInput, ...]:
    """Return the counts of each source of a mix, with its share.

    Args:
        directory: the directory of counts by source.
        shares: the share of each source, from `pipelines.settings.parse_shares`.
    """
    return tuple(
        CountsInput(directory=of_source(directory, name), share=share, source=name)
        for name, share in shares.items()
    )


def of_source(directory: str, name: str) -> str:
    """Return the directory of the counts of one source, inside a directory of counts by source."""
    return join(directory, group_folder(SOURCE, name))


def with_weights(
    sources: Sequence[CountsInput], *, of: ShareOf = "bytes", tokens: Sequence[int] = ()
) -> tuple[CountsInput, ...]:
    """Return sources with weights instead of shares: the smallest is 1, with four decimals.

    So each count is taken once at least, and no share differs by more than 0.01 % of itself from
    the share asked for.

    Args:
        sources: the sources; all of them have a share, or none has.
        of: the measure of the shares: the bytes of all texts, the pre-tokens, or ``tokens``.
        tokens: the number of tokens of each source, for shares of tokens (`tokens_of`).

    Raises:
        ConfigError: only some sources have a share, or the shares do not add up to 1.
        InputError: the counts of a source cannot be read, or are empty.
    """
    shares = [source.share for source in sources if source.share is not None]
    if not shares:
        return tuple(sources)
    if len(shares) < len(sources):
        bare = next(source for source in sources if source.share is None)
        raise ConfigError(
            f"`counts` {bare.directory} has no share, others have one: give all of them shares, "
            "or weights"
        )
    if sum(shares) != 1:
        raise ConfigError(
            f"the shares of `counts` add up to {percent(sum(shares, Fraction()))}, not to 100%"
        )
    factors = []
    for number, (source, share) in enumerate(zip(sources, shares, strict=True)):
        manifest = read_counts(source.directory).manifest
        size = tokens[number] if of == "tokens" else getattr(manifest.totals, of)
        if size == 0:
            raise InputError(f"{source.directory}: no {of} were counted: it can have no share")
        factors.append(share * manifest.scale / size)
    return tuple(
        replace(source, weight=weight, share=None)
        for source, weight in zip(sources, weights_of(factors), strict=True)
    )


def weights_of(factors: Sequence[Fraction]) -> list[Fraction]:
    """Return weights in proportion to factors above 0: the smallest is 1, with four decimals."""
    least = min(factors)
    return [Fraction(round(10_000 * factor / least), 10_000) for factor in factors]


def tokens_of(sources: Sequence[CountsInput], tokenizer: str | None) -> tuple[int, ...]:
    """Return the exact number of tokens of a tokenizer in the counts of each source.

    Args:
        sources: sources with shares.
        tokenizer: the file of the tokenizer.

    Raises:
        ConfigError: there is no tokenizer, its pre-tokenizer differs, or no source has a share.
        InputError: counts or tokenizer cannot be read, or the counts are of runs.
    """
    if tokenizer is not None and all(source.share is None for source in sources):
        raise ConfigError(
            "`share_tokenizer` goes with shares, such as `counts` DIR:60% or `mix` NAME=60%"
        )
    cuts = ((one.directory, read_counts(one.directory).manifest.pretokenizer) for one in sources)
    loaded = load_share_tokenizer(tokenizer, cuts)
    return tuple(fit(loaded, load_counts(source.directory)).tokens for source in sources)


def load_share_tokenizer(
    tokenizer: str | None, cuts: Iterable[tuple[str, Pretokenizer]], *, of_any_text: bool = False
) -> Tokenizer:
    """Load the tokenizer whose tokens are the measure of shares.

    Args:
        tokenizer: the file of the tokenizer.
        cuts: the name of each text in errors, and its pre-tokenizer.
        of_any_text: whether the tokenizer must have tokens for all characters.

    Raises:
        ConfigError: no file is given, or the tokenizer has another pre-tokenizer, has superwords,
            or lacks tokens.
        InputError: the file cannot be read.
    """
    if tokenizer is None:
        raise ConfigError(
            "`share_of` tokens: give `share_tokenizer` FILE, whose tokens they are: the tokenizer "
            "that is trained here is not known before its mix is"
        )
    loaded = load_tokenizer(tokenizer)
    if loaded.superwords:
        raise ConfigError(
            f"the `share_tokenizer` {tokenizer} has superwords, which cross pre-tokens: counts do "
            "not say how often they occur: use a tokenizer without superwords, or shares of bytes"
        )
    for title, cut in cuts:
        if cut != loaded.pretokenizer:
            raise ConfigError(
                f"{title} was split with {cut}, and the `share_tokenizer` {tokenizer} "
                f"splits with {loaded.pretokenizer}: its tokens cannot be counted there: use a "
                "tokenizer that splits text likewise, or shares of bytes"
            )
    model = loaded.model
    lacks = isinstance(model, CharacterLevel) and not (model.unknown or model.byte_fallback)
    if of_any_text and lacks:
        raise ConfigError(
            f"the `share_tokenizer` {tokenizer} has no token for unknown characters, so its "
            "tokens cannot be counted in any corpus: use one with an unknown token or byte "
            "fallback, or shares of bytes"
        )
    return loaded


def effective_mix(counts: Sequence[CountsInput], tokens: Sequence[int]) -> tuple[MixedSource, ...]:
    """Return the share of each set of counts in a training, by bytes, pre-tokens and tokens.

    A weight multiplies counts, so shares depend on the sizes of the corpora, too. The result is
    empty for a single set of counts with weight 1.

    Args:
        counts: the sets of counts, with weights.
        tokens: the number of tokens of each set; empty unless shares are of tokens.
    """
    if len(counts) == 1 and counts[0].weight == 1:
        return ()
    sizes = []
    for number, source in enumerate(counts):
        manifest = read_counts(source.directory).manifest
        factor = Fraction(source.weight) / manifest.scale
        totals = manifest.totals
        held = {"bytes_share": totals.bytes, "pretokens_share": totals.pretokens}
        held |= {"tokens_share": tokens[number]} if tokens else {}
        sizes.append({name: factor * size for name, size in held.items()})
    whole = {name: max(sum(row[name] for row in sizes), Fraction(1)) for name in sizes[0]}
    return tuple(
        MixedSource(
            path=source.title,
            weight=str(source.weight),
            **{name: float(size / whole[name]) for name, size in row.items()},
        )
        for source, row in zip(counts, sizes, strict=True)
    )
