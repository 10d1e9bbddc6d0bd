"""Mutated inputs for the core's entry points, compared with ``bpe.reference``.

    python -m tests.bpe.fuzz --seconds 60

Scanning, counting, training, encoding, superwords, decoding, and loading of tokenizer files, with
all their options (``fuzz_targets.py``), each for the same time. Meant for the core that ``make
fuzz`` builds: sanitizers watch it, it tells which branches an input takes, and leaks are looked for
at the end.

Texts grow out of ``fuzz_seeds/``; an input that made a difference once belongs there. A mutant that
takes a branch, or sees something, that none did before is mutated again; it is kept in the folder
``--corpus``, where the next run finds it. The input under way is in the file ``--input-file``, so
that it is still there after a crash; ``--replay FILE`` runs it alone.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import mmap
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.bpe import sanitized
from tests.bpe.fuzz_files import FORMATS
from tests.bpe.fuzz_mutations import mutated
from tests.bpe.fuzz_targets import TARGETS, DifferenceError, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = Path(__file__).with_name("fuzz_seeds")
LONGEST = 20_000  # bytes of a mutant that is mutated again
LARGEST = 1 << 18  # bytes of any input
HANGS = 300  # seconds that no input takes, even under sanitizers on a busy machine


class Input(NamedTuple):
    """A target, the seed of its dice, and the data."""

    target: str
    seed: int
    data: bytes

    def to_bytes(self) -> bytes:
        """As a file has it; what follows it there is ignored."""
        return f"{self.target} {self.seed} {len(self.data)}\n".encode() + self.data

    @classmethod
    def read(cls, path: Path) -> Input:
        """From a file."""
        head, data = path.read_bytes().split(b"\n", 1)
        target, seed, length = head.decode().split()
        return cls(target, int(seed), data[: int(length)])


@dataclass
class Target:
    """The state of a target.

    Attributes:
        inputs: those that are mutated.
        branches: that were taken, as bits.
        seen: what it returned.
        runs: how often it ran.
        seconds: of a core that this took.
        kept: how many mutants were kept.
    """

    inputs: list[Input] = field(default_factory=list)
    branches: int = 0
    seen: set[Seen] = field(default_factory=set)
    runs: int = 0
    seconds: float = 0.0
    kept: int = 0


class Fuzzer:
    """Runs inputs and remembers which led somewhere new.

    Args:
        input_file: holds the input under way.
        corpus: a folder with inputs of earlier runs, for those of this one.
        hangs: whole seconds after which an input that is still under way ends this process.
    """

    def __init__(self, input_file: Path, corpus: Path, *, hangs: int = 0) -> None:
        self.targets = {name: Target() for name in TARGETS}
        self._coverage = sanitized.Coverage()
        self._input_file = input_file
        self._corpus = corpus
        self._hangs = hangs
        # No thread keeps watch: one that ends while LeakSanitizer looks at threads makes it crash.
        faulthandler.register(signal.SIGALRM, chain=True)
        input_file.parent.mkdir(parents=True, exist_ok=True)
        input_file.write_bytes(bytes(LARGEST))
        with input_file.open("r+b") as file:  # mapped: what is written is there after a crash
            self._under_way = mmap.mmap(file.fileno(), LARGEST)
        corpus.mkdir(parents=True, exist_ok=True)

    def run(self, given: Input) -> bool:
        """Run one input; whether it led somewhere new.

        Raises:
            DifferenceError: with the file that makes it again.
        """
        content = given.to_bytes()
        self._under_way[: len(content)] = content
        target = self.targets[given.target]
        signal.alarm(self._hangs)
        self._coverage.begin()
        begun = time.process_time()
        try:
            seen = TARGETS[given.target](given.data, random.Random(given.seed))
        except Exception as error:
            where = f"--replay {self._input_file}"
            raise DifferenceError(f"{given.target}: {error}\n  {where}") from error
        signal.alarm(0)
        target.seconds += time.process_time() - begun
        target.runs += 1
        branches = self._coverage.taken()
        new = bool(branches & ~target.branches) or seen not in target.seen
        target.branches |= branches
        target.seen.add(seen)
        if new:
            target.inputs.append(given)
        return new

    def begin(self, dice: random.Random, end: float) -> None:
        """Run seeds and what earlier runs kept, in any order, while there is time."""
        waiting: list[Input | Path] = [*self._corpus.iterdir()]
        for data, of_a_file in seeds():
            for name, target in self.targets.items():
                if name == "load" or not of_a_file:
                    target.inputs.append(Input(name, dice.getrandbits(32), data))
        waiting += [given for target in self.targets.values() for given in target.inputs]
        dice.shuffle(waiting)
        for one in waiting:
            if time.monotonic() > end:
                return
            with contextlib.suppress(ValueError):  # an older version of this program wrote it
                given = Input.read(one) if isinstance(one, Path) else one
                if given.target in TARGETS:
                    self.run(given)

    def mutate(self, dice: random.Random) -> None:
        """Run a mutant for the target that took the least time so far; keep it if it is new."""
        name, target = min(self.targets.items(), key=lambda item: item[1].seconds)
        # Half the time the latest ones: what they found is not explored yet.
        inputs = target.inputs[-100:] if dice.random() < 0.5 else target.inputs
        parent, other = dice.choice(inputs), dice.choice(target.inputs)
        seed = parent.seed if dice.random() < 0.6 else dice.getrandbits(32)
        child = Input(name, seed, mutated(parent.data, other.data, dice))
        if self.run(child) and len(child.data) <= LONGEST:
            target.kept += 1
            content = child.to_bytes()
            (self._corpus / hashlib.sha256(content).hexdigest()[:24]).write_bytes(content)

    def summary(self) -> str:
        """A line for each target."""
        return "\n".join(
            f"{name:10} {target.runs:7,} inputs, {target.kept:5,} new, "
            f"{target.branches.bit_count():6,} branches, {target.seconds:5.0f} s"
            for name, target in self.targets.items()
        )


def seeds() -> Iterator[tuple[bytes, bool]]:
    """Data to begin with, and whether it is a tokenizer file: of the repository and all formats."""
    for path in sorted(SEEDS.rglob("*")):
        if path.is_file():
            yield path.read_bytes(), path.parent.name == "files"
    for files in FORMATS.values():
        for content in files.values():
            yield content, True


def fuzz(seconds: float, seed: int, fuzzer: Fuzzer) -> None:
    """Run seeds and mutants for so long; raises as ``Fuzzer.run``."""
    dice = random.Random(seed)
    begun = told = time.monotonic()
    fuzzer.begin(dice, end=begun + seconds / 3)
    say(f"{sum(target.runs for target in fuzzer.targets.values()):,} inputs to begin with")
    while (now := time.monotonic()) < begun + seconds:
        fuzzer.mutate(dice)
        if now - told > 30:
            told = now
            runs = sum(target.runs for target in fuzzer.targets.values())
            say(f"{begun + seconds - now:4.0f} s left, {runs:,} inputs")


def say(line: str) -> None:
    """Print one line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % (1 << 32))
    parser.add_argument("--input-file", type=Path, default=Path("build/fuzz/input"))
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz/corpus"))
    parser.add_argument("--replay", type=Path, help="run one input that was left")
    kinds = ("memory", "object")
    parser.add_argument("--leak", nargs="*", choices=kinds, default=[], help="leak on purpose")
    options = parser.parse_args()
    given = Input.read(options.replay) if options.replay else None  # before it is overwritten
    fuzzer = Fuzzer(options.input_file, options.corpus, hangs=HANGS)
    for kind in options.leak:
        sanitized.leak(kind)
    if given:
        fuzzer.run(given)
    else:
        say(f"seed {options.seed}, {options.seconds:.0f} s")
        fuzz(options.seconds, options.seed, fuzzer)
        say(fuzzer.summary())
    if sanitized.finds_leaks() and sanitized.leaks():
        sys.exit("leaks: see above; with fast_unwind_on_malloc=0 in ASAN_OPTIONS, whole stacks")
    say("no difference, no leak" if sanitized.finds_leaks() else "no difference")


if __name__ == "__main__":
    main()
