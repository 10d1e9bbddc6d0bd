"""Elements of our pipelines: bytes, numbers, and tuples of them.

Descriptors of splits and of finished parts are packed before they become elements. Beam's local
runner can send what a worker has written so far while an element is being written, which is safe
only where no Python code runs in between, as it does where Beam pickles an object itself. (`run`
switches that off; inside a pipeline of another program only this is left.)
"""

from __future__ import annotations

import functools
import pickle
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import apache_beam as beam

from pipelines import stores

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")


def pack(value: Any) -> bytes:
    """``value`` as an element."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(element: bytes) -> Any:
    """The value of an element that `pack` made, in another step of the same job."""
    return pickle.loads(element)  # noqa: S301 - from our own workers, as all that Beam unpickles


class StorageDoFn(beam.DoFn):  # type: ignore[misc]  # Beam has no types
    """A step whose workers reach stores by the options of the process that made it."""

    def __init__(self) -> None:
        super().__init__()
        self._storage = stores.options()

    def setup(self) -> None:
        """Use the options, in each worker."""
        stores.use_options(self._storage)


def with_storage(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """The same function for ``beam.Map`` or ``FlatMap``, whose workers do as `StorageDoFn`'s."""
    storage = stores.options()

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        stores.use_options(storage)
        return function(*args, **kwargs)

    return called
