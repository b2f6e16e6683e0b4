"""What a model predicts, beside what was measured, as a bag that PlotJuggler and Foxglove open; and a layout for it."""

from xml.etree import ElementTree

import numpy as np

from ...model.units import SECOND
from .row_bag import RowBag, accelerations, joint_states

MEASURED, PREDICTED, FRICTIONLESS, RESIDUAL = (
    '/measured/joint_states', '/predicted/joint_states', '/predicted/frictionless', '/predicted/residual')
MEASURED_ACCELERATION, PREDICTED_ACCELERATION = '/measured/acceleration', '/predicted/acceleration'
RATE = 100.0                # Hz, of the messages; the filter leaves nothing that needs more
FOLDER, LAYOUT = 'predicted', 'plotjuggler_layout.xml'
# of the curves of a tab: pictures from above to below, of each (title, [(topic, field, colour)])
PICTURES = (
    ('effort', ((MEASURED, 'effort', '#000000'), (PREDICTED, 'effort', '#0072b2'),
                (FRICTIONLESS, 'effort', '#d55e00'))),
    ('measured - predicted', ((RESIDUAL, 'effort', '#009e73'),)),
    ('velocity', ((MEASURED, 'velocity', '#000000'),)))


class PredictedBag(RowBag):
    """Writes predictions into the folder `path`, one after the other; to be used in a `with` statement.

    manipulator  whose actuators come first in each message, then coordinates that are none
    start_ns     time from which predictions count
    rate         Hz of the messages, at most that of the predictions

    Topics, all with the bandwidth of the filter of the predictions: MEASURED with positions, velocities and efforts;
    PREDICTED with the effort that the model needs, FRICTIONLESS with that without friction, RESIDUAL with measured -
    predicted, all beside the measured positions and velocities; MEASURED_ACCELERATION and PREDICTED_ACCELERATION of the
    coordinates.  What is not known is NaN.
    """

    def __init__(self, path, manipulator, start_ns, rate=RATE):
        self._actuators, self._coordinates = tuple(manipulator.actuators), tuple(manipulator.coordinates)
        self.names = tuple(dict.fromkeys((*self._actuators, *self._coordinates)))
        # columns of the coordinates in `names`
        self._columns = [self.names.index(name) for name in self._coordinates]
        self._start, self._rate, self._next = start_ns, rate, -np.inf
        states, moved = joint_states(self.names), accelerations(self._coordinates)
        super().__init__(path, {MEASURED: states, PREDICTED: states, FRICTIONLESS: states, RESIDUAL: states,
                                MEASURED_ACCELERATION: moved, PREDICTED_ACCELERATION: moved})

    def add(self, prediction):
        """Take a `Prediction`; some of its core rows, `rate` each second."""
        every = max(round(1.0 / (self._rate * prediction.period)), 1)
        core = prediction.core
        # rows of one block follow those of the block before as if there were no blocks
        first = core.start
        while first < core.stop and prediction.t[first] < self._next - 0.5 * prediction.period:
            first += 1
        rows = np.arange(first, core.stop, every)
        if not len(rows):
            return
        self._next = prediction.t[rows[-1]] + every * prediction.period
        motion = np.full((2, len(rows), len(self.names)), np.nan)
        motion[1][:, :len(self._actuators)] = prediction.v[rows]
        for values, own in zip(motion, (prediction.x, prediction.xd)):
            values[:, self._columns] = own[rows, :len(self._coordinates)]
        efforts = (prediction.effort, prediction.effort_id, prediction.effort_id_frictionless,
                   prediction.effort - prediction.effort_id)
        values = {topic: (*motion, self._wide(effort[rows]))
                  for topic, effort in zip((MEASURED, PREDICTED, FRICTIONLESS, RESIDUAL), efforts)}
        values[MEASURED_ACCELERATION] = (prediction.xdd[rows],)
        values[PREDICTED_ACCELERATION] = (prediction.xdd_fd[rows],)
        self.write(self._start + np.rint(prediction.t[rows] * SECOND).astype(np.int64), values)

    def _wide(self, efforts):
        """(n, names) of efforts (n, actuators)."""
        out = np.full((len(efforts), len(self.names)), np.nan)
        out[:, :len(self._actuators)] = efforts
        return out


def write_layout(path, actuators):
    """Write a layout for PlotJuggler 3: a tab for each actuator, and one of all residuals."""
    root = ElementTree.Element('root')
    window = ElementTree.SubElement(root, 'tabbed_widget', parent='main_window', name='Main Window')
    for name in actuators:
        _tab(window, name, [(title, [(curve(topic, name, field), colour) for topic, field, colour in curves])
                            for title, curves in PICTURES])
    colours = [one[2] for _, curves in PICTURES[:2] for one in curves]
    _tab(window, 'measured - predicted', [
        (name, [(curve(RESIDUAL, name, 'effort'), colours[k % len(colours)])]) for k, name in enumerate(actuators)])
    ElementTree.SubElement(window, 'currentTabIndex', index='0')
    ElementTree.SubElement(root, 'use_relative_time_offset', enabled='1')
    ElementTree.indent(root, ' ')
    ElementTree.ElementTree(root).write(path, encoding='UTF-8', xml_declaration=True)


def curve(topic, joint, field):
    """The name that PlotJuggler gives a number in a JointState."""
    return f'{topic}/{joint}/{field}'


def _tab(window, title, pictures):
    tab = ElementTree.SubElement(window, 'Tab', tab_name=title, containers='1')
    container = ElementTree.SubElement(tab, 'Container')
    share = f'{1.0 / len(pictures):.6f}'
    splitter = ElementTree.SubElement(container, 'DockSplitter', orientation='-', count=str(len(pictures)),
                                      sizes=';'.join([share] * len(pictures)))
    for name, curves in pictures:
        area = ElementTree.SubElement(splitter, 'DockArea', name=name)
        plot = ElementTree.SubElement(area, 'plot', mode='TimeSeries', style='Lines', flip_x='false', flip_y='false')
        ElementTree.SubElement(plot, 'limitY')
        for text, colour in curves:
            ElementTree.SubElement(plot, 'curve', name=text, color=colour)
