"""Measure drift, the fit of a tokenizer to arriving text, and warn if the fit is poor.

The figures are bytes (of UTF-8) per token, the share of tokens of one byte, and, if the counts of
the training are given, unseen pre-tokens in a million: pre-tokens that the counts do not hold.
``drift/YYYY-MM-DD.jsonl`` (UTC) has a row of figures for each batch of appended text.
"""

from __future__ import annotations

import datetime as dt
import json
import operator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from bpe._codec import from_jsonable
from bpe.counting import PretokenCounter
from bpe.counts import require_pretokens
from bpe.counts.files import counts_table
from bpe.errors import BpeError
from bpe.models import BYTE_TOKENS
from pipelines import storage
from pipelines.count.directory import load_counts, read_counts
from pipelines.errors import ConfigError, InputError
from pipelines.output.names import DRIFT, is_series
from pipelines.storage import join
from pipelines.tokenizer_files import read_training

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    import pyarrow as pa

    from bpe import Tokenizer
    from pipelines.settings import DriftSettings

_BASELINE = "give the counts that it was trained on"
_FLUSH_BYTES = 64 << 20  # of a counter in memory


@dataclass(frozen=True)
class Measured:
    """Sums over texts: bytes, tokens, tokens of one byte, pre-tokens and unseen pre-tokens."""

    text_bytes: int = 0
    tokens: int = 0
    single_byte_tokens: int = 0
    pretokens: int = 0
    unseen: int = 0

    def __add__(self, other: Measured) -> Measured:
        return Measured(*map(operator.add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: Measured) -> Measured:
        return Measured(*map(operator.sub, vars(self).values(), vars(other).values()))

    @property
    def bytes_per_token(self) -> float | None:
        """Return the bytes of text per token; None if there are no tokens."""
        return self.text_bytes / self.tokens if self.tokens else None

    @property
    def single_byte_share(self) -> float | None:
        """Return the share (0 to 1) of tokens of one byte; None if there are no tokens."""
        return self.single_byte_tokens / self.tokens if self.tokens else None

    @property
    def unseen_per_million(self) -> float | None:
        """Return the unseen pre-tokens in a million; None if no pre-tokens were counted."""
        return 1e6 * self.unseen / self.pretokens if self.pretokens else None

    def figures(self, trained: float | None) -> dict[str, Any]:
        """Return what a row of drift says of the texts; ``trained`` is of the training."""
        return {
            "text_bytes": self.text_bytes,
            "tokens": self.tokens,
            "bytes_per_token": self.bytes_per_token,
            "trained_bytes_per_token": trained,
            "single_byte_share": self.single_byte_share,
            "unseen_per_million": self.unseen_per_million,
        }


def check_baseline(directory: str, tokenizer: Tokenizer) -> None:
    """Check that a directory holds counts of pre-tokens, split as the tokenizer splits texts.

    Raises:
        InputError, ConfigError, bpe.errors.CountsError: the counts are missing or unsuitable.
    """
    manifest = read_counts(directory).manifest
    require_pretokens(manifest, title=f"`baseline` {directory}", remedy=_BASELINE)
    if manifest.pretokenizer != tokenizer.pretokenizer:
        raise ConfigError(
            f"`baseline` {directory}: was split with {manifest.pretokenizer}, but the tokenizer "
            f"splits with {tokenizer.pretokenizer}: {_BASELINE}"
        )


class Gauge:
    """A maker of measurements with one tokenizer; threads may share a gauge.

    Args:
        tokenizer: the tokenizer that encodes the texts.
        baseline: the directory of the counts of the training (see `check_baseline`), whose
            pre-tokens are all held in memory; None to leave pre-tokens uncounted.

    Raises:
        InputError, bpe.errors.CountsError: the directory holds no counts.
    """

    def __init__(self, tokenizer: Tokenizer, baseline: str | None) -> None:
        by_bytes = getattr(tokenizer.model, "byte_fallback", False)
        single = {bytes([byte]) for byte in range(256)} | set(BYTE_TOKENS if by_bytes else ())
        self.single = np.array([token in single for token in tokenizer.tokens], bool)
        self._tokenizer = tokenizer
        self._seen: pa.LargeBinaryArray | None = None
        if baseline is not None:
            self._seen = load_counts(baseline).pretokens

    def measure(self) -> DriftMeasure:
        """Return a new measurement, which counts pre-tokens if there is a baseline."""
        if self._seen is None:
            return DriftMeasure(self, None)
        cut, special_tokens = self._tokenizer.pretokenizer, tuple(self._tokenizer.special_tokens)
        return DriftMeasure(self, PretokenCounter(cut, special_tokens=special_tokens))

    def unseen(self, table: pa.Table) -> int:
        """Return the number of occurrences whose pre-token the baseline lacks."""
        # Only the few of the table are put into hash tables: those of the baseline take ten times
        # as long as looking them up.
        pretokens = table["pretoken"].combine_chunks()
        seen = pc.filter(self._seen, pc.is_in(self._seen, value_set=pretokens))
        known = pc.is_in(pretokens, value_set=seen)
        return int(pc.sum(table["count"].filter(pc.invert(known))).as_py() or 0)


class DriftMeasure:
    """A measurement of the texts of one split; ends with `finish`."""

    def __init__(self, gauge: Gauge, counter: PretokenCounter | None) -> None:
        self._gauge, self._counter = gauge, counter
        self._sums = Measured()

    def add(self, texts: pa.Array, ids: npt.NDArray[Any]) -> None:
        """Add texts, string or binary without nulls, and all their ids to the measurement."""
        pretokens = 0 if self._counter is None else self._counter.add(texts)
        self._sums += Measured(
            text_bytes=pc.sum(pc.binary_length(texts)).as_py() or 0,
            tokens=len(ids),
            single_byte_tokens=int(np.count_nonzero(self._gauge.single[ids])),
            pretokens=pretokens,
        )
        if self._counter is not None and self._counter.nbytes > _FLUSH_BYTES:
            self._look_up()

    def finish(self) -> Measured:
        """Return the sums over all texts."""
        self._look_up()
        return self._sums

    def _look_up(self) -> None:
        for run in [] if self._counter is None else self._counter.drain(1):
            self._sums += Measured(unseen=self._gauge.unseen(counts_table(run)))


def trained_bytes_per_token(tokenizer_path: str) -> float | None:
    """Return bytes per token of the training, from ``training.json`` next to a tokenizer.

    None if the file is missing or lacks the figure, as for BoundlessBPE.
    """
    try:
        training = read_training(tokenizer_path)
    except (InputError, BpeError):
        return None
    return None if training is None else training.bytes_per_token


def drift_rows(directory: str) -> list[dict[str, Any]]:
    """Return all rows of drift in the directory of an encoded corpus.

    Raises:
        InputError: a file cannot be read.
    """
    folder = join(directory, DRIFT)
    days = [one.name for one in storage.entries(folder) if one.is_file]
    return [row for day in days if is_series(f"{DRIFT}/{day}") for row in _read(join(folder, day))]


def note_drift(
    directory: str,
    measured: Iterable[Measured],
    settings: DriftSettings,
    *,
    trained: float | None,
    now: float,
) -> list[str]:
    """Write a row for the text appended since the last row, if any; return warnings.

    A row is the difference of two sums over the whole corpus, so that no text is left out if a job
    is killed between two rows.

    Args:
        directory: the directory of the encoded corpus.
        measured: the measurements of the whole corpus.
        settings: the limits of the warnings.
        trained: bytes per token of the training; None to compare with the first row instead.
        now: seconds since 1970.

    Raises:
        InputError: a row is damaged.
    """
    rows = drift_rows(directory)
    try:
        last = from_jsonable(Measured, rows[-1]["sums"]) if rows else Measured()
        if trained is None and rows:
            trained = rows[0]["bytes_per_token"]
    except (KeyError, TypeError, ValueError) as error:
        folder = join(directory, DRIFT)
        raise InputError(f"{folder}: a row is damaged: {error!r}: move it away") from error
    sums = sum(measured, Measured())
    new = sums - last
    if min(vars(new).values()) < 0:
        new = Measured()  # an input was replaced by a smaller one: the next row begins here
    elif not new.tokens:
        return []
    trained = trained or new.bytes_per_token
    said = warnings_of(new, trained=trained, settings=settings)
    time = dt.datetime.fromtimestamp(now, dt.timezone.utc)
    row = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        **new.figures(trained),
        "warnings": said,
        "sums": asdict(sums),
    }
    path = join(directory, DRIFT, f"{time:%Y-%m-%d}.jsonl")
    lines = [*(_read(path) if storage.exists(path) else []), row]
    storage.write(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return said


def warnings_of(new: Measured, *, trained: float | None, settings: DriftSettings) -> list[str]:
    """Return warnings about these figures; empty if the tokenizer fits.

    Args:
        new: the sums over the text that arrived.
        trained: bytes per token to compare with, or None.
        settings: the limits.
    """
    said = []
    found = new.bytes_per_token
    if found is not None and trained and found < settings.warn_bytes_per_token * trained:
        said.append(
            f"{found:.2f} bytes per token, below {settings.warn_bytes_per_token:g} of the "
            f"{trained:.2f} that the tokenizer was trained to"
        )
    share, limit = new.single_byte_share, settings.warn_single_bytes
    if share is not None and limit is not None and share > limit:
        said.append(f"{share:.1%} of the tokens are single bytes, more than {limit:.1%}")
    unseen, most = new.unseen_per_million, settings.warn_unseen
    if unseen is not None and most is not None and unseen > most:
        said.append(
            f"{unseen:,.0f} in a million pre-tokens were not seen in training, more than {most:,g}"
        )
    return said


def _read(path: str) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in storage.read(path).splitlines()]
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}: move it away") from error
