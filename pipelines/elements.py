"""Pack elements of our pipelines, set bad elements apart, and check types and windows.

Descriptors of splits and of finished parts are packed before they become elements. Beam's local
runner can send a worker's output while an element is being written. This is safe only if no Python
code runs in between, but Python code runs when Beam itself pickles an object. (`run` switches such
sending off; inside a pipeline of another program, packing is the only protection.)
"""

from __future__ import annotations

import copy
import functools
import pickle
import traceback
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.core import get_function_args_defaults
from apache_beam.transforms.trigger import AfterWatermark, DefaultTrigger
from apache_beam.transforms.window import GlobalWindow
from apache_beam.typehints import Dict, TypeCheckError
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type
from apache_beam.typehints.typehints import TupleConstraint, TypeConstraint, is_consistent_with
from apache_beam.utils.shared import Shared
from apache_beam.utils.windowed_value import WindowedValue

from pipelines import object_stores
from pipelines.errors import ConfigError, RecordError
from pipelines.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import Self

    from pipelines.failures import FailureChannel

_P = ParamSpec("_P")
_T = TypeVar("_T")
_GLOBAL = GlobalWindow()
_DOCUMENTS = (str, bytes, Dict[Any, Any], beam.Row, Table, pa.Table, pa.RecordBatch)


def pack(value: Any) -> bytes:
    """Return ``value`` as an element."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(element: bytes) -> Any:
    """Return the value of an element that `pack` made in another step of the same job."""
    return pickle.loads(element)  # noqa: S301 - from our own workers, as all that Beam unpickles


class StorageDoFn(beam.DoFn):  # type: ignore[misc]  # Beam has no types
    """A DoFn whose workers reach stores by the options of the process that made the DoFn."""

    def __init__(self) -> None:
        super().__init__()
        self._storage = object_stores.options()

    def setup(self) -> None:
        """Use the options of stores in a worker."""
        object_stores.use_options(self._storage)


class BatchDoFn(StorageDoFn):
    """A DoFn of `ExceptionHandling` that gathers elements with their windows.

    Args:
        bad_tag: the output of bad elements; None if a bad element fails the pipeline.
    """

    def __init__(self, *, bad_tag: str | None) -> None:
        super().__init__()
        self._bad_tag = bad_tag

    def _inspect_process(self) -> tuple[list[str], list[Any]]:
        """Return the arguments of ``process``; Beam's exception handling sees ``*args`` only.

        ``DoFn.get_function_arguments`` calls this hook, in spite of the underscore.
        """
        arguments: tuple[list[str], list[Any]] = get_function_args_defaults(self.process)
        return arguments

    def bad(self, elements: Iterable[tuple[Any, str]]) -> Iterator[beam.pvalue.TaggedOutput]:
        """Yield bad elements for their output, each with the reason.

        Args:
            elements: pairs of an element and the reason; a gathered element is a `WindowedValue`
                with its own window and time.

        Raises:
            RecordError: there is no output of bad elements.
        """
        for given, reason in elements:
            windowed = given if isinstance(given, WindowedValue) else None
            element = given if windowed is None else windowed.value
            if self._bad_tag is None:
                raise RecordError(
                    f"{reason} — element {element!r:.200} — filter it out before, or collect bad "
                    "elements with with_exception_handling()"
                )
            error = RecordError(reason)
            letter = element, (RecordError, repr(error), traceback.format_exception(error))
            output = letter if windowed is None else windowed.with_value(letter)
            yield beam.pvalue.TaggedOutput(self._bad_tag, output)


class Step(StorageDoFn):
    """A DoFn that calls a function with each element, until the job has failed.

    Args:
        failures: the channel for errors, which ends the job.
        function: called with the element and the arguments; returns the results to yield.
        arguments: small and picklable values.
    """

    def __init__(
        self, failures: FailureChannel, function: Callable[..., Iterable[Any]], *arguments: Any
    ) -> None:
        super().__init__()
        self._failures = failures
        self._function = function
        self._arguments = arguments

    def process(self, element: Any) -> Iterator[Any]:
        """Yield the results of the function."""
        if self._failures.stopped():
            return
        with self._failures.reported():
            yield from self._function(element, *self._arguments)


class OncePerProcess:
    """An argument of a `Step` that makes a value once for all threads of a worker process."""

    def __init__(self) -> None:
        self._shared = Shared()
        self._held: _Held | None = None

    def get(self, key: str, make: Callable[[], _T]) -> _T:
        """Return the value of a key; make the value unless the last one has the same key."""
        self._held = self._shared.acquire(lambda: _Held(make()), tag=key)
        value: _T = self._held.value
        return value


def forget_once() -> None:
    """Release the last value of `OncePerProcess`, which Beam holds until the next is made."""
    OncePerProcess().get("", lambda: None)


class _Held:
    """A wrapper of any value, so that Beam can hold a weak reference to the wrapper."""

    def __init__(self, value: Any) -> None:
        self.value = value


def with_storage(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Wrap a function for ``beam.Map`` or ``FlatMap``: workers reach stores as in `StorageDoFn`."""
    storage = object_stores.options()

    @functools.wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        object_stores.use_options(storage)
        return function(*args, **kwargs)

    return called


@beam.ptransform_fn  # type: ignore[untyped-decorator]  # Beam has no types
def call_once(begin: Any, function: Callable[..., Any], *arguments: Any, types: Any = Any) -> Any:
    """Call a function once, with None and the arguments; return a PCollection of its result.

    Args:
        begin: a pipeline.
        function: called in a worker, which reaches stores as in `StorageDoFn`.
        *arguments: small and picklable values, and side inputs.
        types: the type of the result.
    """
    start = begin | "Start" >> beam.Create([None], reshuffle=False)
    return start | "Call" >> beam.Map(with_storage(function), *arguments).with_output_types(types)


class ExceptionHandling(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """A transform that fails at the first bad element, or has an output for all, as Beam's do."""

    _handling: Mapping[str, Any] | None = None

    def with_exception_handling(
        self,
        main_tag: str = "good",
        dead_letter_tag: str = "bad",
        *,
        exc_class: Any = Exception,
        threshold: float = 1,
        threshold_windowing: Any = None,
        error_handler: Any = None,
        **unsupported: Any,
    ) -> Self:
        """Return a copy with two outputs: the results, and the bad elements with their errors.

        The outputs are like those of ``beam.Map``: a bad element is ``(element, (type, repr,
        traceback))``, and the outputs are a tuple, with their tags as names.

        Args:
            main_tag: the tag of the results.
            dead_letter_tag: the tag of the bad elements.
            exc_class: the errors, or a tuple of them, that do not fail the pipeline; the error of a
                bad element is `pipelines.errors.RecordError`.
            threshold: the share of elements that may be bad; more fail the pipeline.
            threshold_windowing: the windowing by which the share is taken; None for the windows of
                the elements.
            error_handler: takes the bad elements (``beam.transforms.error_handling``); the results
                are then the only output.
            **unsupported: Beam's other arguments, at their defaults only: they handle the error of
                a single call, and elements are processed in batches.

        Raises:
            ConfigError: another argument is set.
        """
        if names := [name for name, value in unsupported.items() if value]:
            raise ConfigError(
                f"{type(self).__name__}.with_exception_handling: {', '.join(names)} is not "
                "supported, since elements are processed in batches: leave it out"
            )
        handling = copy.copy(self)
        if issubclass(RecordError, exc_class):
            handling.__dict__["_handling"] = {
                "main_tag": main_tag,
                "dead_letter_tag": dead_letter_tag,
                "threshold": threshold,
                "threshold_windowing": threshold_windowing,
                "error_handler": error_handler,
            }
        return handling

    def with_error_handler(self, error_handler: Any, **arguments: Any) -> Self:
        """Return a copy that sends bad elements to a handler; see `with_exception_handling`."""
        if error_handler is None:
            return self
        return self.with_exception_handling(error_handler=error_handler, **arguments)

    @property
    def bad_tag(self) -> str | None:
        """Return the tag of the output of bad elements; None if they fail the pipeline."""
        return None if self._handling is None else str(self._handling["dead_letter_tag"])

    def apply_step(
        self,
        source: Any,
        step: beam.ParDo,
        *,
        label: str,
        types: Any,
        then: Callable[[Any], Any] = lambda results: results,
    ) -> Any:
        """Add a step that raises RecordError on a bad element, or yields it as `BatchDoFn` does.

        Beam wraps the step in any case, so that its name does not depend on exception handling.

        Args:
            source: a PCollection.
            step: the step.
            label: the label of the step.
            types: the type of the results.
            then: adds steps to the results; the bad elements remain an output.
        """
        handling = self._handling or {}
        caught = RecordError if handling else ()
        handled = step.with_exception_handling(exc_class=caught, partial=True, **handling)
        result = source | label >> handled
        main = result if handling.get("error_handler") else result[handling.get("main_tag", "good")]
        main.element_type = convert_to_beam_type(types)
        main = then(main)
        if not handling or handling["error_handler"]:
            return main
        bad_tag = handling["dead_letter_tag"]
        return _Outputs({handling["main_tag"]: main, bad_tag: result[bad_tag]})


class _Outputs(tuple[Any, ...]):  # noqa: SLOT001 - a tuple has no slots for its tags
    """A tuple of PCollections, with their tags as names, like Beam's tuple of outputs."""

    def __new__(cls, outputs: Mapping[str, Any]) -> Self:
        """Make a tuple of the outputs."""
        return super().__new__(cls, outputs.values())

    def __init__(self, outputs: Mapping[str, Any]) -> None:
        self._fields = tuple(outputs)  # as of a named tuple: the graph names outputs so

    def __reduce__(self) -> Any:
        return type(self), (dict(zip(self._fields, self, strict=True)),)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._fields.index(key) if isinstance(key, str) else key)

    def __getattr__(self, name: str) -> Any:
        if name == "_fields" or name not in self._fields:
            raise AttributeError(name)
        return self[name]


def check_field(name: str, value: str) -> None:
    """Check the name of a field.

    Raises:
        ConfigError: the name is empty, or not a str.
    """
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is {value!r:.60}: give the name of a field")


def require_global_window(source: Any, what: str) -> None:
    """Check that a PCollection is in the global window.

    Args:
        source: the PCollection.
        what: the transform and its single result, for the message.

    Raises:
        ConfigError: the PCollection has windows or triggers.
    """
    if not source.windowing.is_default():
        raise ConfigError(
            f"{what} of a whole, bounded PCollection: put it into the global window first, "
            "beam.WindowInto(beam.window.GlobalWindows())"
        )


def check_documents(kind: Any, text_field: str, transform: str, *, keys: bool = False) -> None:
    """Check that the declared type of a PCollection can be documents; Any can be.

    Args:
        kind: the type of the elements.
        text_field: the field that holds the text.
        transform: the name of the transform, for the message.
        keys: whether documents may have a key.

    Raises:
        apache_beam.typehints.TypeCheckError: the elements cannot be documents.
    """
    kinds = [keyed_type(one)[1] if keys else one for one in getattr(kind, "union_types", [kind])]
    problems = [_no_document(one, text_field) for one in kinds]
    if all(problems):
        raise TypeCheckError(f"{transform}: elements of type {kind} {problems[0]}")


def keyed_type(kind: Any) -> tuple[Any, Any]:
    """Return the types of key and document; the type of the key is None if there is no key."""
    if isinstance(kind, TupleConstraint) and len(kind.tuple_types) == 2:
        key, document = kind.tuple_types
        return key, document
    return None, kind


def _no_document(kind: Any, text_field: str) -> str:
    """Return the reason why elements of a type are no documents; empty if they may be."""
    if kind is None or any(is_consistent_with(one, kind) for one in _DOCUMENTS):
        return ""
    try:
        fields = dict(named_fields_from_element_type(kind))
    except TypeError:  # no schema
        if isinstance(kind, TypeConstraint) or kind.__module__ == "builtins":
            return "are no documents: give str, bytes, dicts, rows or pyarrow tables"
        return ""  # of a class that this does not know
    if text_field not in fields:
        return f"have no field {text_field!r}: name the one that holds the text, text_field=..."
    if any(is_consistent_with(one, fields[text_field]) for one in (str, bytes)):
        return ""
    return f"have a field {text_field!r} that is no text: it must be str or bytes"


def fires_once(windowing: Any) -> bool:
    """Return whether each window fires once at most, when the watermark passes its end."""
    trigger, in_time = windowing.triggerfn, windowing.allowed_lateness == 0
    if isinstance(trigger, AfterWatermark):
        return trigger.early is None and (in_time or trigger.late is None)
    return bool(trigger == DefaultTrigger() and in_time)


def require_one_pane(source: Any, what: str) -> None:
    """Check that the windows of a PCollection fire once at most.

    Args:
        source: the PCollection.
        what: the transform and its use of a window, for the message.

    Raises:
        ConfigError: a window may fire more than once.
    """
    if not fires_once(source.windowing):
        raise ConfigError(
            f"{what}, but {source.windowing.triggerfn} with an allowed lateness of "
            f"{source.windowing.allowed_lateness.micros / 1e6:g} s may fire several times: put it "
            "into windows of Beam's default trigger, beam.WindowInto(beam.window.FixedWindows(…)), "
            "after panes in discarding mode"
        )


def in_window(value: Any, window: Any = _GLOBAL, time: Any = None) -> WindowedValue:
    """Return a value in a window, for ``finish_bundle``; None as time is the end of the window."""
    return WindowedValue(value, window.max_timestamp() if time is None else time, (window,))


def row_type(fields: Mapping[str, Any]) -> Any:
    """Return the type of rows with these fields; Any if a name is no usable Python name."""
    usable = all(one.isidentifier() and not iskeyword(one) and one[0] != "_" for one in fields)
    return RowTypeConstraint.from_fields([*fields.items()]) if usable else Any
