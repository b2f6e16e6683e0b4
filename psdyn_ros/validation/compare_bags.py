"""Did the machine, or its model, get worse from one recording to another?

Exit codes: 0 same or better, 1 worse, 2 unusable, 3 same or better as far as partial recordings say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ..api.manipulator import Manipulator
from ..model.parameters.hydraulics import Hydraulics
from .metrics import EXIT_CODES, FAIL, INVALID, PARTIAL_PASS, PASS, UNDECIDED
from .metrics.comparison import SAME, WORSE, compare, worst
from .playback import write_playback
from .validate import Validation, validate


@dataclass(frozen=True)
class Comparison:
    """What became of a machine from one recording to another.

    first, second  `Validation`
    changes        tuple of `Change`, () where a recording is unusable
    """

    first: Validation
    second: Validation
    changes: tuple[Any, ...]

    def __repr__(self) -> str:
        return f'Comparison of {self.first.bag} and {self.second.bag}: {self.text}'

    @property
    def unusable(self) -> str:
        """Why nothing can be said, '' where something can."""
        return '; '.join(f"'{found.bag}': {'; '.join(found.verdict.reasons)}" for found in (self.first, self.second)
                         if found.verdict.verdict == INVALID)

    @property
    def partial(self) -> tuple[str, ...]:
        """Why a recording is only a part of what there is to compare."""
        return tuple(f"'{found.bag}': {text}" for found in (self.first, self.second) for text in (
            *found.verdict.partial, *(found.verdict.reasons if found.verdict.verdict == UNDECIDED else ())))

    @property
    def verdict(self) -> str:
        """'same', 'worse' or 'better', INVALID where nothing can be said."""
        return INVALID if self.unusable else worst(self.changes)

    @property
    def exit_code(self) -> int:
        """0 same or better, 1 worse, 2 unusable, 3 same or better of partial input."""
        if self.unusable:
            return EXIT_CODES[INVALID]
        if self.verdict == WORSE:
            return EXIT_CODES[FAIL]
        return PARTIAL_PASS if self.partial else EXIT_CODES[PASS]

    @property
    def text(self) -> str:
        """The verdict in one sentence."""
        if self.unusable:
            return f'{INVALID}: {self.unusable}'
        verdict = self.verdict
        if verdict == SAME:
            return 'SAME: no difference is more than chance and worth mentioning'
        return f'{verdict.upper()}: ' + '; '.join(
            f'{change.actuator}: {change.figure}' for change in self.changes if change.verdict == verdict)


def compare_bags(first: str | PathLike[str], second: str | PathLike[str], urdf: str | PathLike[str] | Manipulator, *,
                 hydraulics: str | PathLike[str] | Hydraulics | None = None,
                 initial: Mapping[str, float] | None = None, output: str | PathLike[str] | None = None,
                 **options: Any) -> Comparison:
    """Validate two recordings of a machine against its model, and compare what comes of them; returns a `Comparison`.

    first, second  bags: before and after
    urdf, hydraulics, initial, options  as `validate` takes them
    output         folder for report.html, its pictures, playback_first.html and playback_second.html of up to 5 minutes
                   each, and comparison.json; None writes nothing
    Raises what `validate` raises.
    """
    found = [validate(bag, urdf, hydraulics=hydraulics, initial=initial, **options) for bag in (first, second)]
    usable = all(one.verdict.verdict != INVALID for one in found)
    comparison = Comparison(found[0], found[1], compare(*found) if usable else ())
    if output is not None:
        # figures take a second to import
        from .report.compare_report import write_comparison
        write_comparison(output, comparison, [
            write_playback(output, one.bag, one.manipulator, hydraulics=one.predictor.hydraulics,
                           topics=one.settings.topics | (options.get('topics') or {}), file=f'playback_{name}.html')
            for name, one in (('first', comparison.first), ('second', comparison.second))])
    return comparison
