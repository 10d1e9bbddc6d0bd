"""How well a tokenizer fits what arrives, and when to say so.

Three figures of the text of a stretch of time: bytes per token (of UTF-8), the share of tokens of
one byte, and, where the counts of the training are given, unseen pre-tokens in a million: those
that the counts do not hold. They stand in ``drift/YYYY-MM-DD.jsonl`` (UTC), a row for each stretch.
"""

from __future__ import annotations

import datetime as dt
import json
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.counter import PretokenCounter
from bpe.counts.files import run_table
from pipelines import storage
from pipelines.count.directory import load_counts
from pipelines.errors import InputError
from pipelines.output.names import TRAINING, read_json_object
from pipelines.storage import join
from pipelines.watch import log
from pipelines.watch.log import DRIFT

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.watch.settings import DriftSettings

_FLUSH_BYTES = 64 << 20  # of a counter in memory


@dataclass(frozen=True)
class Measured:
    """Sums over texts: their bytes and tokens, tokens of one byte, pre-tokens, those unseen."""

    text_bytes: int = 0
    tokens: int = 0
    single_byte_tokens: int = 0
    pretokens: int = 0
    unseen: int = 0

    def __add__(self, other: Measured) -> Measured:
        return Measured(*(a + b for a, b in zip(_values(self), _values(other), strict=True)))

    def __sub__(self, other: Measured) -> Measured:
        return Measured(*(a - b for a, b in zip(_values(self), _values(other), strict=True)))

    def to_json(self) -> dict[str, int]:
        """The sums as JSON values."""
        return asdict(self)

    @property
    def bytes_per_token(self) -> float | None:
        """None where there are no tokens."""
        return self.text_bytes / self.tokens if self.tokens else None

    @property
    def single_byte_share(self) -> float | None:
        """Of all tokens, from 0 to 1; None where there are none."""
        return self.single_byte_tokens / self.tokens if self.tokens else None

    @property
    def unseen_per_million(self) -> float | None:
        """Of all pre-tokens; None where they were not looked at."""
        return 1e6 * self.unseen / self.pretokens if self.pretokens else None


def _values(measured: Measured) -> list[int]:
    return list(asdict(measured).values())


class Baseline:
    """The pre-tokens that a tokenizer was trained on; all of them are held in memory.

    Args:
        directory: of their counts.

    Raises:
        InputError, bpe.CountsError: it holds none.
    """

    def __init__(self, directory: str) -> None:
        counts = load_counts(directory)
        self._pretokens = counts.pretokens
        self.pretokenizer = counts.pretokenizer

    def unseen(self, pretokens: pa.Array, counts: pa.Array) -> int:
        """How many occurrences are of pre-tokens that are not among them."""
        known = pc.is_in(pretokens, value_set=self._pretokens)
        return int(pc.sum(counts.filter(pc.invert(known))).as_py() or 0)


class Gauge:
    """Measures texts by their tokens.

    Args:
        tokenizer: whose tokens they are.
        baseline: tells unseen pre-tokens; None where they are not looked at.
    """

    def __init__(self, tokenizer: Tokenizer, baseline: Baseline | None) -> None:
        self._tokenizer = tokenizer
        self._baseline = baseline
        lengths = [len(token or b"") for token in tokenizer.tokens]
        self._single = np.array([length == 1 for length in lengths], bool)

    def measure(self) -> Measure:
        """A new measurement."""
        return Measure(self._tokenizer, self._baseline, self._single)


class Measure:
    """A measurement of the blocks of one input; ends with `finish`."""

    def __init__(
        self, tokenizer: Tokenizer, baseline: Baseline | None, single: np.ndarray[Any, Any]
    ) -> None:
        self._baseline = baseline
        self._single = single
        self._sums = Measured()
        self._counter = None
        if baseline is not None:
            self._counter = PretokenCounter(
                tokenizer.pretokenizer, special_tokens=tuple(tokenizer.special_tokens)
            )

    def add(self, block: EncodedBlock) -> None:
        """Take a block into account."""
        ids = block.plain.flatten().to_numpy()
        pretokens = 0 if self._counter is None else self._counter.add(block.texts)
        self._sums += Measured(
            text_bytes=pc.sum(pc.binary_length(block.texts)).as_py() or 0,
            tokens=len(ids),
            single_byte_tokens=int(np.count_nonzero(self._single[ids])),
            pretokens=pretokens,
        )
        if self._counter is not None and self._counter.nbytes > _FLUSH_BYTES:
            self._look_up()

    def finish(self) -> Measured:
        """The sums."""
        self._look_up()
        return self._sums

    def _look_up(self) -> None:
        if self._counter is None or self._baseline is None:
            return
        for run in self._counter.drain(1):
            table = run_table(run)
            unseen = self._baseline.unseen(table["pretoken"].chunk(0), table["count"].chunk(0))
            self._sums += Measured(unseen=unseen)

    def to_json(self) -> dict[str, int]:
        """The sums so far, as JSON values."""
        return self._sums.to_json()


def trained_bytes_per_token(tokenizer_path: str) -> float | None:
    """Bytes of pre-tokens per token of the training, from ``training.json`` beside a tokenizer.

    None where it is not there, or does not say it.
    """
    folder = tokenizer_path.rpartition("/")[0] or "."
    training = read_json_object(join(folder, TRAINING)) or {}
    try:
        merges = training["merges"]
        tokens = merges[-1]["tokens_left"] if merges else training["initial_tokens"]
        return float(training["initial_bytes"]) / float(tokens)
    except (KeyError, TypeError, IndexError, ValueError, ZeroDivisionError):
        return None


class Series:
    """The rows of the series in a directory: what arrived since the row before.

    A row is the difference of two sums over all that was encoded, so that nothing is left out when
    a job is killed between two rows.

    Args:
        directory: of the encoded corpus.
        settings: how often there is a row, and when to warn.
        trained: bytes per token of the training; None: those of the first row take its place.
    """

    def __init__(self, directory: str, settings: DriftSettings, trained: float | None) -> None:
        self._directory = directory
        self._settings = settings
        self._trained = trained
        self._lock = threading.Lock()
        self._last = Measured()
        self._written = 0.0
        rows = self.rows()
        if rows:
            self._last = Measured(**rows[-1]["sums"])
            if trained is None:
                self._trained = rows[0]["bytes_per_token"]

    def rows(self) -> list[dict[str, Any]]:
        """All rows that there are.

        Raises:
            InputError: a file cannot be read.
        """
        return [row for day in _days(self._directory) for row in _read(day)]

    def update(self, sums: Measured, *, now: float, last: bool = False) -> list[str]:
        """Write a row if it is time, or if it is the last; returns warnings.

        Args:
            sums: over all that was encoded so far.
            now: seconds since 1970.
            last: whether the job ends.
        """
        with self._lock:
            new = sums - self._last
            if min(_values(new)) < 0:  # an input was replaced by a smaller one
                self._last = sums
                return []
            if not new.tokens or not (last or now - self._written >= self._settings.every):
                return []
            self._last, self._written = sums, now
            self._trained = self._trained or new.bytes_per_token
            row = self._row(new, sums, now)
        path = join(self._directory, DRIFT, f"{row['time'][:10]}.jsonl")
        lines = [*(_read(path) if storage.exists(path) else []), row]
        storage.write(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
        return list(row["warnings"])

    def _row(self, new: Measured, sums: Measured, now: float) -> dict[str, Any]:
        time = dt.datetime.fromtimestamp(now, dt.timezone.utc)
        return {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "text_bytes": new.text_bytes,
            "tokens": new.tokens,
            "bytes_per_token": new.bytes_per_token,
            "trained_bytes_per_token": self._trained,
            "single_byte_share": new.single_byte_share,
            "unseen_per_million": new.unseen_per_million,
            "warnings": warnings_of(new, trained=self._trained, settings=self._settings),
            "sums": sums.to_json(),
        }


def warnings_of(new: Measured, *, trained: float | None, settings: DriftSettings) -> list[str]:
    """What there is to say of these figures; empty where the tokenizer fits.

    Args:
        new: what arrived.
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


def _days(directory: str) -> list[str]:
    folder = join(directory, DRIFT)
    return [
        join(folder, entry.name)
        for entry in storage.entries(folder)
        if entry.kind == "file" and log.is_series(entry.name)
    ]


def _read(path: str) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in storage.read(path).splitlines()]
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}: move it away") from error
