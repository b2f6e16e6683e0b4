"""The report of `psdyn simulate`: what was commanded, what the machine did, and its motion in 3-D."""

import numpy as np

from ...view.page import write_playback
from ..metrics.tracking import units
from .figure_style import BLUE, VERMILLION, finish, in_kilo, panels
from .hydraulic_figures import pressures
from .machine_drawing import motion_picture
from .page import DISPLAY, FORCE_UNITS, MOTION, Head, write_page

# mode of a command: its unit where the actuator is a cylinder, and where it turns
COMMAND_UNITS = {'valve': ('1', '1'), 'velocity': ('m/s', 'rad/s'), 'effort': ('N', 'N m'), 'pressure': ('Pa', 'Pa')}
SINCE = 'since the start'


def write_report(folder, manipulator, states, modes, fault, facts):
    """Write report.html with its pictures, and playback.html, into a folder; return the path of the former.

    states  `SimulatedStates`
    modes   command mode of each actuator
    fault   why the plant stopped, '' where it did not
    facts   {label: text}
    """
    motion = states.motion()
    playback = motion and write_playback(folder, manipulator, motion)
    shown = {}
    if motion:
        shown['motion.png'] = 'The motion, from the side', motion_picture(manipulator, motion, manipulator.name)
        shown['actuators.png'] = 'Commands, positions and forces', _actuators(manipulator, states, motion, modes)
    telemetry = states.series()
    if motion and telemetry is not None:
        shown['pressures.png'] = 'Pressures and valves', pressures(telemetry, 0, motion.time[-1], 'simulated', SINCE)
    verdict = f'FAULT: {fault}' if fault else f'{states.time[-1]:.3f} s simulated.'
    return write_page(folder, 'simulated.html.j2', shown, Head(verdict, fault, facts), f'{manipulator.name}, simulated',
                      playbacks={MOTION: playback}, ranges=list(states.ranges()))


def _actuators(manipulator, states, motion, modes):
    """Commands, positions and forces of all actuators over time."""
    kinds = units(manipulator, manipulator.actuators)
    figure, grid = panels(12, 0.6 + 2.0 * len(kinds), len(kinds), 3, sharex=True)
    commands, time = states.command, states.time
    for k, ((name, unit), mode, (left, middle, right)) in enumerate(zip(kinds.items(), modes, grid)):
        left.step(time, commands[:, k], where='post', color=VERMILLION, linewidth=1.3)
        left.set_ylabel(f'{name}\n{mode} [{COMMAND_UNITS[mode][unit == "rad"]}]')
        middle.plot(motion.time, motion.joints[:, manipulator.joints.index(name)], color=BLUE, linewidth=1.3)
        middle.set_ylabel(f'[{DISPLAY[unit][2]}]')
        factor, force = in_kilo(np.abs(motion.effort[:, k]).max(), FORCE_UNITS[unit])
        right.plot(motion.time, factor * motion.effort[:, k], color=BLUE, linewidth=1.3)
        right.set_ylabel(f'[{force}]')
    for axes, title in zip(grid[0], ('command', 'position', 'force on the mechanism')):
        axes.set_title(title)
    finish(grid, SINCE)
    return figure
