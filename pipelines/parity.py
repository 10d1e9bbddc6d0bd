"""Find the directories of the groups of counts for parity-aware training."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from bpe._codec import to_jsonable
from bpe.files import fingerprint
from bpe.models import ByteLevel
from pipelines import storage
from pipelines.count.directory import group_directories, read_counts
from pipelines.errors import ConfigError
from pipelines.settings import CountsInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe.pretokenizer import Pretokenizer
    from pipelines.settings import ParitySettings, TrainSettings

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The groups of a parity-aware training, in the order of its counts.

    Attributes:
        names: the names of the groups.
        dev: a directory of held-out counts for each group; empty without held-out counts.
        parity: the settings by which the groups choose merges.
    """

    names: tuple[str, ...]
    dev: tuple[str, ...]
    parity: ParitySettings

    def settings(self) -> dict[str, Any]:
        """Return the settings by which two trainings are the same, besides their counts.

        Raises:
            InputError, bpe.errors.CountsError: held-out counts are missing or damaged.
        """
        values = to_jsonable(replace(self.parity, dev_counts=()))
        return {
            **values,
            "groups": list(self.names),
            "dev": [fingerprint(read_counts(one).manifest.to_json()) for one in self.dev],
        }

    def check_cut(self, pretokenizer: Pretokenizer) -> None:
        """Check that held-out text has the pre-tokenizer of the text to train on.

        Raises:
            ConfigError: the held-out text has another pre-tokenizer.
        """
        for directory in self.dev:
            cut = read_counts(directory).manifest.pretokenizer
            if cut != pretokenizer:
                raise ConfigError(
                    f"`dev_counts` {directory} was split with {cut}, the text to train on with "
                    f"{pretokenizer}: count one of them again"
                )

    def named(self, values: Iterable[_Value]) -> dict[str, _Value]:
        """Return values, given in the order of the groups, by name of group."""
        return dict(zip(self.names, values, strict=True))


def check_parity(counts: Sequence[CountsInput], training: TrainSettings) -> None:
    """Check that counts and training settings go with parity.

    Raises:
        ConfigError: a setting does not go with parity; the message names the setting.
    """
    for source in counts:
        if source.weight != 1 or source.share is not None:
            raise ConfigError(
                f"`counts` {source.directory}: weights and shares do not go with `parity`: groups "
                "are never added up; give the directory alone"
            )
    if training.extend is not None:
        raise ConfigError("`extend` does not go with `parity`: train a tokenizer of its own")
    if training.model not in (None, ByteLevel()) or training.initial_alphabet:
        raise ConfigError(
            "`parity` is for models of bytes (`symbols` bytes): held-out text may have characters "
            "that an alphabet lacks"
        )


def expected_groups(parity: ParitySettings, training: TrainSettings) -> Groups:
    """Return the groups of counts to be made: those of the held-out counts, or one group.

    Raises:
        InputError, bpe.errors.CountsError: held-out counts are missing or damaged.
        ConfigError: a setting does not go with parity.
    """
    check_parity((), training)
    dev = _named(parity.dev_counts, "dev_counts")
    return Groups(names=tuple(dev) or ("",), dev=tuple(dev.values()), parity=parity)


def find_groups(
    counts: Sequence[CountsInput], parity: ParitySettings
) -> tuple[tuple[CountsInput, ...], Groups]:
    """Return the directories of counts, one for each group, and the groups.

    A group has the name of its directory; ``en`` for a directory such as ``language=en``.

    Raises:
        ConfigError: two groups have one name, or held-out counts are of other groups.
    """
    directories = _named([source.directory for source in counts], "counts")
    dev = _named(parity.dev_counts, "dev_counts")
    if dev:
        for name in sorted(directories.keys() ^ dev.keys()):
            has, lacks = ("dev_counts", "counts") if name in dev else ("counts", "dev_counts")
            raise ConfigError(
                f"group {name!r} is in `{has}` but not in `{lacks}`: both need the same groups"
            )
    groups = Groups(
        names=tuple(directories),
        dev=tuple(storage.located(dev[name]) for name in directories) if dev else (),
        parity=parity,
    )
    return tuple(CountsInput(directory=one) for one in directories.values()), groups


def _named(directories: Sequence[str], option: str) -> dict[str, str]:
    """Return directories by name of group; a directory of counts by group has its groups."""
    named: list[tuple[str, str]] = []
    for directory in directories:
        groups = group_directories(directory)
        own_name = directory.rstrip("/").rpartition("/")[2].rpartition("=")[2]
        named += groups.items() or [(unquote(own_name), directory)]
    names = [name for name, _ in named]
    for name, times in Counter(names).items():
        if times > 1:
            raise ConfigError(
                f"`{option}` has {times} groups that are called {name!r}: each directory is a "
                "group, called by its last name"
            )
    return dict(named)
