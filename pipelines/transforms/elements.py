"""What the transforms share: bad elements, windows, and the types of elements."""

from __future__ import annotations

import copy
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.errors import ConfigError, RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Self

BAD = "bad"


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


def in_window(value: Any, window: Any) -> WindowedValue:
    """``value`` in a window, at its end."""
    return WindowedValue(value, window.max_timestamp(), (window,))


def row_type(name: str, fields: Sequence[tuple[str, Any]]) -> Any:
    """The type of rows with these fields; Any where their names are none of Python's."""
    names = [field for field, _ in fields]
    usable = all(one.isidentifier() and not iskeyword(one) and one[0] != "_" for one in names)
    if not usable or len(set(names)) < len(names):
        return Any
    return NamedTuple(name, list(fields))
