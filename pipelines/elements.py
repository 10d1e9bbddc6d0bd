"""Elements of our pipelines: packed for the way, bad ones set apart, each in its window.

Descriptors of splits and of finished parts are packed before they become elements. Beam's local
runner can send what a worker has written so far while an element is being written, which is safe
only where no Python code runs in between, as it does where Beam pickles an object itself. (`run`
switches that off; inside a pipeline of another program only this is left.)
"""

from __future__ import annotations

import copy
import functools
import pickle
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.shared import Shared
from apache_beam.utils.windowed_value import WindowedValue

from pipelines import stores
from pipelines.errors import ConfigError, RecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Self

    from pipelines.failures import Failures

_P = ParamSpec("_P")
_T = TypeVar("_T")
BAD = "bad"
_GLOBAL = GlobalWindow()


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


class Step(StorageDoFn):
    """A step of a job: yields what a function makes of an element, until the job has failed.

    Args:
        failures: where the job ends, and where errors are reported.
        function: given the element and the arguments; returns what to yield.
        arguments: small, and picklable.
    """

    def __init__(
        self, failures: Failures, function: Callable[..., Iterable[Any]], *arguments: Any
    ) -> None:
        super().__init__()
        self._failures = failures
        self._function = function
        self._arguments = arguments

    def process(self, element: Any) -> Iterator[Any]:
        """Call the function."""
        if self._failures.stopped():
            return
        with self._failures.reported():
            yield from self._function(element, *self._arguments)


class OncePerProcess:
    """An argument of a `Step` that makes a value once, for all threads of a worker process."""

    def __init__(self) -> None:
        self._shared = Shared()
        self._held: _Held | None = None

    def get(self, key: str, make: Callable[[], _T]) -> _T:
        """The value of a key, made where the process has none or that of another key."""
        self._held = self._shared.acquire(lambda: _Held(make()), tag=key)
        value: _T = self._held.value
        return value


def forget_once() -> None:
    """Let go of the last value of `OncePerProcess`, which Beam holds until another is made."""
    OncePerProcess().get("", lambda: None)


class _Held:
    """What Beam can hold a weak reference to, which it cannot to every value."""

    def __init__(self, value: Any) -> None:
        self.value = value


def with_storage(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """The same function for ``beam.Map`` or ``FlatMap``, whose workers do as `StorageDoFn`'s."""
    storage = stores.options()

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        stores.use_options(storage)
        return function(*args, **kwargs)

    return called


class BadElement(NamedTuple):
    """An element that could not be used.

    Attributes:
        element: as it came; of a table one row, as a table.
        reason: what is wrong with it.
    """

    element: Any
    reason: str


class ExceptionHandling(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """A transform that fails at the first bad element, or puts bad ones into an output."""

    _collects = False
    _max_failures: int | None = None

    def with_exception_handling(self, *, max_failures: int | None = None) -> Self:
        """A copy whose result is a pair: what it makes, and the bad elements, each with its reason.

        Args:
            max_failures: more bad elements than this fail the pipeline (in each window, where there
                are windows); None for any number.

        Raises:
            ConfigError: the number is negative.
        """
        if max_failures is not None and max_failures < 0:
            raise ConfigError(f"max_failures {max_failures} is negative: use 0 or more, or None")
        handling = copy.copy(self)
        handling.__dict__.update(_collects=True, _max_failures=max_failures)
        return handling

    def apply_dofn(
        self, source: Any, dofn: beam.DoFn, *side_inputs: Any, label: str, types: Any, bad: Any
    ) -> Any:
        """Add a step that yields bad elements to `BAD`; returns its output, or both in a pair.

        Args:
            source: a PCollection.
            dofn: the step.
            *side_inputs: of the step.
            label: of the step.
            types: of the output.
            bad: the type of bad elements.
        """
        step = beam.ParDo(dofn, *side_inputs)
        if not self._collects:
            return source | label >> step.with_output_types(types)
        outputs = source | label >> step.with_outputs(BAD, main="good")
        good = outputs.good | "Good" >> beam.Map(_same).with_output_types(types)
        bad_elements = outputs[BAD] | "Bad" >> beam.Map(_same).with_output_types(bad)
        if self._max_failures is not None:
            _ = (
                bad_elements
                | "Reasons" >> beam.Map(_reason)
                | "Count failures" >> beam.CombineGlobally(_Tally()).without_defaults()
                | "Check failures" >> beam.Map(_check_failures, self._max_failures)
            )
        return good, bad_elements


def _same(element: Any) -> Any:
    return element


def _reason(bad: Any) -> str:
    return str(bad.reason)


class _Tally(beam.CombineFn):  # type: ignore[misc]
    """How many reasons there are, and the first of them in the order of text."""

    def create_accumulator(self) -> tuple[int, str]:
        return 0, ""

    def add_input(self, accumulator: tuple[int, str], reason: str) -> tuple[int, str]:
        return self.merge_accumulators([accumulator, (1, reason)])

    def merge_accumulators(self, accumulators: Iterable[tuple[int, str]]) -> tuple[int, str]:
        counted = [one for one in accumulators if one[0]]
        return sum(n for n, _ in counted), min((reason for _, reason in counted), default="")

    def extract_output(self, accumulator: tuple[int, str]) -> tuple[int, str]:
        return accumulator


def _check_failures(tally: tuple[int, str], limit: int) -> None:
    failures, reason = tally
    if failures > limit:
        raise RecordError(
            f"{failures} bad elements, where max_failures allows {limit}; one of them: {reason}"
        )


def bad_outputs(
    bad: Iterable[tuple[Any, str]], *, collects: bool
) -> Iterator[beam.pvalue.TaggedOutput]:
    """Bad elements for their output, in the window of the element that is processed.

    Raises:
        RecordError: they are not collected, and there is one.
    """
    for element, reason in bad:
        if not collects:
            raise_bad(element, reason)
        yield beam.pvalue.TaggedOutput(BAD, BadElement(element, reason))


def raise_bad(element: object, reason: str) -> None:
    """Fail on a bad element.

    Raises:
        RecordError: always.
    """
    raise RecordError(
        f"{reason} — element {element!r:.200} — filter it out before, or collect bad elements with "
        "with_exception_handling()"
    )


def check_field(name: str, value: str) -> None:
    """Refuse what is no name of a field.

    Raises:
        ConfigError: it is empty, or no str.
    """
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is {value!r:.60}: give the name of a field")


def require_global_window(source: Any, what: str) -> None:
    """Refuse a PCollection with windows.

    Args:
        source: the PCollection.
        what: the transform and what it makes once, for the message.

    Raises:
        ConfigError: it has windows or triggers.
    """
    if not source.windowing.is_default():
        raise ConfigError(
            f"{what} of a whole, bounded PCollection: put it into the global window first, "
            "beam.WindowInto(beam.window.GlobalWindows())"
        )


def in_window(value: Any, window: Any = _GLOBAL) -> WindowedValue:
    """``value`` at the end of a window, as ``finish_bundle`` must yield it."""
    return WindowedValue(value, window.max_timestamp(), (window,))


def row_type(name: str, fields: Sequence[tuple[str, Any]]) -> Any:
    """The type of rows with these fields; Any where their names are none of Python's."""
    names = [field for field, _ in fields]
    usable = all(one.isidentifier() and not iskeyword(one) and one[0] != "_" for one in names)
    if not usable or len(set(names)) < len(names):
        return Any
    return NamedTuple(name, list(fields))
