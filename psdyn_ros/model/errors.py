"""Named errors: each names the thing, what was expected and what exists."""
from __future__ import annotations

import difflib
from collections.abc import Iterable


class PsdynError(ValueError):
    """Base of every error that the package raises about its input."""


class ModelError(PsdynError):
    """The description of the machine cannot be used."""


class XmlError(ModelError):
    """Not an XML text that we read: broken, too large, too deep, or with a DTD or entities."""


class UnknownNameError(ModelError):
    """A link or joint is named that does not exist."""


class DuplicateNameError(ModelError):
    """Two things of one kind have the same name."""


class TreeError(ModelError):
    """The joints do not form one tree with one root."""


class InertiaError(ModelError):
    """A mass or inertia that no body can have, or none on a body that moves."""


class LoopError(ModelError):
    """A closed loop that cannot be used: open, out of tolerance, ambiguous or of an unknown kind."""


class NoTriangleError(LoopError):
    """A loop that is not a cylinder triangle."""


class LoopClosureError(LoopError):
    """A loop that cannot close, at all or at the initial position."""


class AssemblyModeError(LoopError):
    """More than one way to assemble a loop, and no hint which."""


class ActuationError(ModelError):
    """The actuators do not fit the degrees of freedom."""


class StateError(PsdynError):
    """A state, effort or motion that cannot be used."""


class ShapeError(StateError):
    """An array of the wrong shape."""


class NonFiniteError(StateError):
    """NaN or infinity in an input."""


class UnreachableStrokeError(StateError):
    """A stroke at which a loop does not close."""


class TogglePointError(StateError):
    """A stroke at which the lever arm of a cylinder is zero: its three pins are in one line."""


class MeasurementError(StateError):
    """Measured joints that do not fix every loop."""


def check_name(name: str, existing: Iterable[str], message: str, error: type[PsdynError] = UnknownNameError) -> None:
    """Raise the error, with a hint at the nearest name, where a name is none of the existing ones."""
    if name not in existing:
        raise error(f'{message}{did_you_mean(name, existing)}')


def did_you_mean(name: str, existing: Iterable[str]) -> str:
    """Return the hint that ends a message about an unknown name."""
    existing = sorted(existing)
    # comparing takes the square of the length
    near = difflib.get_close_matches(str(name), [one for one in existing if len(one) < 100], n=1, cutoff=0.6) \
        if len(str(name)) < 100 else None
    if near:
        return f"; did you mean '{near[0]}'?"
    shown = ', '.join(map(shorten, existing[:8])) + (', ...' if len(existing) > 8 else '')
    return f'; there are: {shown}' if existing else '; there are none'


def shorten(text: str) -> str:
    """Return the text at a length that a message can carry."""
    return text if len(text) <= 120 else text[:100] + ' ...'
