"""Which version of a file this is: whether it is the one that a job was planned with.

Sizes and times say so, not contents; where only a time changed, whoever asks reads the contents.
"""

from __future__ import annotations

import math
import os
import platform
from typing import TYPE_CHECKING, NamedTuple

from apache_beam.io.filesystems import FileSystems

from pipelines.errors import InputError
from pipelines.files.filesystems import is_local, of_client, reason

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata

_SECOND = 1_000_000_000


class Version(NamedTuple):
    """What a filesystem says of one version of a file, beside its size.

    Attributes:
        modified: nanoseconds since 1970; whole seconds on a store, which tells more only in lists.
        tag: the inode and its machine, or a store's ETag or checksum; empty where nobody asked.
    """

    modified: int
    tag: str = ""

    @classmethod
    def of_status(cls, status: os.stat_result) -> Version:
        """The version of a local file."""
        return cls(status.st_mtime_ns, f"{status.st_ino}@{platform.node()}")

    @classmethod
    def of_metadata(cls, file: FileMetadata) -> Version:
        """The version of an object, without its tag."""
        return cls(math.floor(file.last_updated_in_seconds) * _SECOND)

    def may_be(self, other: Version) -> bool:
        """Whether nothing says that ``other`` is another version.

        Inodes of two machines are not compared: they may see one filesystem with different ones.
        """
        if self.modified != other.modified:
            return False
        tags = (self.tag, other.tag)
        if not all(tags) or len({tag.partition("@")[2] for tag in tags}) > 1:
            return True
        return self.tag == other.tag


def file_version(path: str) -> Version | None:
    """The version of the file at ``path`` as it is now; None where there is none.

    Raises:
        InputError: it cannot be asked for.
    """
    try:
        if is_local(path):
            return Version.of_status(os.stat(path))  # noqa: PTH116 - a name need not be text
        filesystem = FileSystems.get_filesystem(path)  # `match` would take the path for a pattern
        if not filesystem.exists(path):
            return None
        of_list = Version.of_metadata(filesystem.metadata(path))
        return of_list._replace(tag=str(filesystem.checksum(path)))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot read its time: {reason(error)}") from error
    except Exception as error:
        if is_local(path):
            raise  # the clients of some stores have errors of their own
        raise InputError(f"{path}: cannot read its time: {of_client(error)}") from error
