"""All injections."""

from . import control_faults, measurement_faults, plausibility_faults  # noqa: F401, they register themselves
from .injection import INJECTIONS, After, Injection

__all__ = ('INJECTIONS', 'After', 'Injection')
