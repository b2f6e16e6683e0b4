"""Every control law by its name: those of this package, and those of packages that register theirs."""

from collections.abc import Mapping
from importlib.metadata import entry_points

from ...model.errors import ModelError, UnknownNameError, did_you_mean
from .base import ControlLaw
from .computed_torque import ComputedTorque, PdGravity
from .valve_computed_torque import ValveControl
from .valve_pid import ValvePid

GROUP = 'psdyn_ros.laws'        # of entry points `name = module:class`
# not by entry points, so that the package runs from a folder of sources too
OWN = {'computed_torque': ComputedTorque, 'pd_gravity': PdGravity, 'valve_computed_torque': ValveControl,
       'valve_pid': ValvePid}
MEMBERS = ('update', 'freeze', 'predicted_efforts')      # that a law has to bring with it
NEEDS = ('hydraulics', 'period')


class Laws(Mapping):
    """{name: class of a law}; a law of another package is imported when it is asked for.

    Raises UnknownNameError, and ModelError where that law cannot be imported or is none; others are not affected.
    """

    def __init__(self):
        self._points = {}
        for point in entry_points(group=GROUP):
            self._points.setdefault(point.name, []).append(point)

    def __iter__(self):
        yield from OWN
        yield from (name for name in self._points if name not in OWN)

    def __len__(self):
        return len(OWN.keys() | self._points.keys())

    def __getitem__(self, name):
        points = self._points.get(name, [])
        if len(points) + (name in OWN) > 1:
            found = ', '.join(['psdyn_ros'] * (name in OWN) + [point.value for point in points])
            raise ModelError(f"law '{name}': registered more than once: {found}")
        if name in OWN:
            return OWN[name]
        if not points:
            raise UnknownNameError(f"law '{name}': expected one of {', '.join(self)}{did_you_mean(str(name), self)}")
        return _load(points[0])


def _load(point):
    """Return the class of an entry point; ModelError where it cannot be loaded or is no law."""
    where = f"law '{point.name}' of {point.value}"
    try:
        kind = point.load()
    except Exception as error:      # whatever a foreign module raises when it is imported
        raise ModelError(f'{where}: it cannot be imported: {type(error).__name__}: {error}') from error
    if not (isinstance(kind, type) and issubclass(kind, ControlLaw)):
        raise ModelError(f'{where}: {kind!r:.80}; expected a class that derives from ControlLaw')
    lacking = [name for name in MEMBERS if getattr(kind, name) is getattr(ControlLaw, name)]
    if lacking:
        raise ModelError(f'{where}: it lacks {", ".join(lacking)}')
    unknown = [name for name in kind.needs if name not in NEEDS]
    if unknown:
        raise ModelError(f"{where}: it needs '{unknown[0]}'; expected among {', '.join(NEEDS)}")
    return kind


LAWS = Laws()


def make_law(name, manipulator, hydraulics=None, interfaces=None, period=None, **options):
    """Return the law of this name, with the gains that its options and its machine give it.

    name        one of `LAWS`
    hydraulics  `Hydraulics` of the machine; laws on valves need it
    interfaces       {actuator: interface} or (actuators,), see `ControlLaw`
    period      s, between updates; laws on valves need it
    options     of the law, as of its `make`

    Raises UnknownNameError, ModelError, ActuationError.
    """
    kind = LAWS[name]
    for what, value in (('hydraulics', hydraulics), ('period', period)):
        if what in kind.needs and value is None:
            raise ModelError(f"law '{name}': it needs {what}")
    return kind.make(manipulator, hydraulics, period, interfaces=interfaces, **options)
