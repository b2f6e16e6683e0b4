"""A package with a control law of its own, as a user installs one: a module and its entry points."""

SOURCE = '''
from dataclasses import dataclass

import numpy as np

from psdyn_ros.control.laws.base import ControlLaw
from psdyn_ros.control.laws.gains import COORDINATES, check_gains, gain


@dataclass(frozen=True)
class SpringGains:
    stiffness: np.ndarray = gain('1/s^2', 'acceleration for an error', COORDINATES, 1e4)
    damping: np.ndarray = gain('1/s', 'acceleration for the rate of an error', COORDINATES, 1e3)


class Spring(ControlLaw):
    """The forces of the model for the acceleration of a spring and a damper."""

    Gains = SpringGains
    allowed = ('effort',)
    parameters = {'bandwidth': 'frequency'}

    def __init__(self, manipulator, hydraulics=None, period=None, *, frequency=15.0, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        full = np.ones(manipulator.dof)
        self.gains = SpringGains(frequency**2 * full, 2.0 * frequency * full)
        self._predicted = np.zeros(manipulator.dof)

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        if not self.reference.started:
            self.hold(x)
        self.desired = np.array(self.reference.ahead(t + age + 0.5 * self.period))
        now = self.reference.ahead(t)
        error = self.gains.stiffness * (now[0] - x) + self.gains.damping * (now[1] - xd)
        self._predicted = self.load.inverse_dynamics(self.desired[0], self.desired[1], self.desired[2] + error)
        return self._predicted.copy()

    def freeze(self, mask):
        pass

    def set_gains(self, gains):
        check_gains(gains, self.manipulator.dof)
        self.gains = gains

    @property
    def predicted_efforts(self):
        return self._predicted
'''
ENTRY_POINTS = {'spring': 'spring_law:Spring', 'absent': 'no_such_module:Law', 'broken': 'broken_law:Law',
                'function': 'spring_law:gain', 'halfway': 'broken_law:Halfway', 'greedy': 'broken_law:Greedy',
                'valve_pid': 'spring_law:Spring'}
BROKEN = '''
from psdyn_ros.control.laws.base import ControlLaw
from spring_law import Spring


class Halfway(ControlLaw):
    def update(self, *arguments):
        return None


class Greedy(Spring):
    needs = ('luck',)


def __getattr__(name):
    raise RuntimeError('no such thing here')
'''


def install(folder, names=('spring',)):
    """Write the package into a folder of sys.path, with these of its entry points; return the folder."""
    about = folder / 'spring_law-1.0.dist-info'
    about.mkdir(parents=True)
    (folder / 'spring_law.py').write_text(SOURCE)
    (folder / 'broken_law.py').write_text(BROKEN)
    (about / 'METADATA').write_text('Metadata-Version: 2.1\nName: spring-law\nVersion: 1.0\n')
    points = '\n'.join(f'{name} = {ENTRY_POINTS[name]}' for name in names)
    (about / 'entry_points.txt').write_text(f'[psdyn_ros.laws]\n{points}\n')
    return folder
