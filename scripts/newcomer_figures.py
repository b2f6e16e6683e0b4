#!/usr/bin/env python3
"""Print what a newcomer has to read: modules from state to command, sizes of folders and functions, lines.

    scripts/newcomer_figures.py [--path] [--against COMMIT]

--path runs one cycle of the controller of the crane under each law of LAWS, which needs rclpy.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / 'psdyn_ros'
CORE = 'model', 'kernels', 'assembly', 'api', 'formulations'
LAWS = 'computed_torque', 'valve_computed_torque'
MACHINE, RATE = 'hiab_xs031', 50.0       # Hz; slow, as a cycle on a busy computer may be
MAX_FILES, MAX_LINES, MAX_PARAMETERS, MAX_MODULES = 16, 60, 8, 25
# a check that ships is in the list and in the fault campaign too, and in two pages that tests compare with it
SHIPPED_CHECK = 'its class, checks.py, an injection of tools/fault_campaign, two pages'
KERNELS = 'kernels'             # one call, however many files they are compiled from
# what is added: (files that change, the test that adds one)
DOORS = {
    'law': (1, 'test_law_door.py'),
    'check of one\'s own': (1, 'test_check_door.py'),
    'figure': (2, 'test_figure_door.py'),
    'sensor': (2, 'test_sensor_door.py'),
}


class Function(NamedTuple):
    """A function of the package: where it is, its lines from `def` on, its parameters but self and cls."""

    place: str
    lines: int
    parameters: int
    positional: int


def functions():
    """Yield every `Function` of the package."""
    for file in sorted(PACKAGE.rglob('*.py')):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                a = node.args
                names = [one.arg for one in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
                count = len([name for name in names if name not in ('self', 'cls')]) + bool(a.vararg) + bool(a.kwarg)
                yield Function(f'{file.relative_to(ROOT)}:{node.lineno} {node.name}',
                               node.end_lineno - node.lineno + 1, count, count - len(a.kwonlyargs))


def folders():
    """Return {folder: number of its .py files}."""
    found = {}
    for file in PACKAGE.rglob('*.py'):
        folder = str(file.parent.relative_to(ROOT))
        found[folder] = found.get(folder, 0) + 1
    return found


def lines(commit=None):
    """Return (lines of the package outside the core, lines of tests and benchmarks) in the working tree or a commit."""
    counted = subprocess.run(['git', 'grep', '-c', '', *([commit] if commit else []), '--', 'psdyn_ros/*.py',
                              'test/*.py', 'bench/*.py'], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    outside = tests = 0
    for line in counted.splitlines():
        path, count = line.removeprefix(f'{commit}:').rsplit(':', 1)
        if not path.startswith('psdyn_ros/'):
            tests += int(count)
        elif path.split('/')[1] not in CORE:
            outside += int(count)
    return outside, tests


def modules_of_path(law):
    """Return the modules of the package that run from the callback of a state to the publication of its command."""
    import rclpy

    from psdyn_ros.nodes.messages.conversions import JointStateWriter

    rclpy.init(args=[])
    try:
        with tempfile.TemporaryDirectory() as folder:
            driven = _Driven(law, JointStateWriter, Path(folder))
            try:
                return driven.traced()
            finally:
                driven.node.destroy_node()
    finally:
        rclpy.shutdown()


class _Driven:
    """The controller of the crane in this process; it follows a reference to where the machine stands."""

    def __init__(self, law, writer, folder):
        import numpy as np
        from rclpy.parameter import Parameter

        import psdyn_ros
        from psdyn_ros.model.locate import find_config, find_machine
        from psdyn_ros.nodes.controller.node import Controller
        from psdyn_ros.nodes.runtime.lifecycle import ManagedNode
        from psdyn_ros.tools.demo.demo_safety import WIDEST_TIMEOUTS, safety_text
        # a busy computer may be late, which no machine feels here
        safety = folder / f'{MACHINE}_safety.yaml'
        safety.write_text(safety_text(psdyn_ros.load(find_machine(MACHINE)), find_config(safety.name),
                                      timeouts={**WIDEST_TIMEOUTS, 'degraded_misses': 8}))
        values = {'robot_description': find_machine(MACHINE), 'law': law, 'rate': RATE, 'emergency_stop': 'none',
                  'safety': str(safety), 'pressure_topic': '/telemetry', 'overrun_share': 1.0}
        if law.startswith('valve'):
            values['hydraulics'] = find_config(f'{MACHINE}_hydraulics.yaml')
        self.node = ManagedNode('controller', automatically_declare_parameters_from_overrides=True,
                                parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
        self.controller = Controller(self.node)
        self._do('configure', 'inactive')
        m = self.controller.core.manipulator
        joints, position, velocity, _ = m.joint_state(m.initial_position, np.zeros(m.dof))
        self._state = writer(joints)
        self._state.position[:], self._state.velocity[:] = position, velocity
        self._telemetry = self._pressures() if law.startswith('valve') else None
        self._callbacks = {one.topic_name: one.callback for one in self.node.subscriptions}

    def _do(self, transition, expected):
        getattr(self.node, f'trigger_{transition}')()
        if self.node.failure is not None:
            raise self.node.failure
        if self.node.lifecycle != expected:
            raise SystemExit(f'{transition}: {self.node.refusal}')

    def _pressures(self):
        """The telemetry of oil that holds the machine where it is."""
        from psdyn_ros.model.locate import find_config
        from psdyn_ros.model.parameters.hydraulics import read_hydraulics
        from psdyn_ros.nodes.messages.conversions import LabelledArrayWriter
        from psdyn_ros.nodes.messages.pressures import WANTED
        from psdyn_ros.tools.timing.source import standing
        m = self.controller.core.manipulator
        machine = standing(m, read_hydraulics(find_config(f'{MACHINE}_hydraulics.yaml'), m.actuators))
        telemetry = LabelledArrayWriter(tuple(machine.hydraulics.cylinders), WANTED)
        telemetry.values[:, :2], telemetry.values[:, 2] = machine.pressures, machine.hydraulics.supply.pressure
        return telemetry

    def cycle(self, call=lambda function, message: function(message)):
        """Deliver pressures and a state, and wait for the next."""
        import time

        from rclpy.serialization import serialize_message
        stamp = time.time_ns()
        if self._telemetry is not None:
            self._telemetry.values[:, 3] = stamp * 1e-9
            self._callbacks['/telemetry'](serialize_message(self._telemetry.message))
        call(self._callbacks['/joint_states'], serialize_message(self._state.stamp(stamp)))
        self.controller.turn()
        time.sleep(1.0 / RATE)

    def follow(self):
        """Bring the controller to RUN."""
        import time

        from psdyn_ros.control.reference.trajectory import Waypoints
        from psdyn_ros.control.safety.fault_table import State
        core, m = self.controller.core, self.controller.core.manipulator
        self.cycle()
        self._do('activate', 'active')
        deadline, trajectory, executed = time.monotonic() + 20.0, None, False
        while core.states.state is not State.RUN:
            self.cycle()
            if core.states.state is State.STANDBY:
                core.enable(time.monotonic_ns())
            elif core.states.state is State.HOLD and trajectory is None:
                trajectory = core.validate_trajectory(Waypoints(m.coordinates, [600.0], [m.initial_position]))
            elif not executed and trajectory is not None and trajectory.advance(0.001):
                core.execute(trajectory, time.monotonic_ns())
                executed = True
            if time.monotonic() > deadline:
                raise SystemExit(f'the controller is {core.states.state.name}: {core.states.reasons}')

    def traced(self):
        """Return the modules of a steady cycle; the trace ends where the command is given to rclpy."""
        self.follow()
        for _ in range(50):
            self.cycle()
        outputs, found = self.controller._outputs, set()
        publish = outputs._publish_joints

        def record(frame, event, _):
            file = frame.f_code.co_filename
            if event == 'call' and file.startswith(f'{PACKAGE}{os.sep}'):
                name = file[len(str(PACKAGE)) + 1:]
                found.add(KERNELS if name.startswith(f'{KERNELS}{os.sep}') else name)

        def published(message):
            sys.setprofile(None)
            publish(message)

        def call(function, message):
            outputs._publish_joints = published
            sys.setprofile(record)
            try:
                function(message)
            finally:
                sys.setprofile(None)
                outputs._publish_joints = publish
        self.cycle(call)
        return sorted(found)


def main():
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--path', action='store_true', help='trace a cycle of the controller')
    parser.add_argument('--against', metavar='COMMIT', help='compare lines with those of a commit')
    options = parser.parse_args()
    every, sizes = list(functions()), folders()
    for folder, count in sorted(sizes.items(), key=lambda item: -item[1])[:3]:
        print(f'{folder}: {count} files, at most {MAX_FILES}')
    for what, key, most in (('lines', lambda one: one.lines, MAX_LINES),
                            ('parameters', lambda one: one.parameters, MAX_PARAMETERS)):
        above = [one for one in every if key(one) > most]
        worst = max(every, key=key)
        print(f'functions with more than {most} {what}: {len(above)}; the most are {key(worst)}, {worst.place}')
    many = [one for one in every if one.parameters > MAX_PARAMETERS]
    print(f'    of these parameters all are counted; {max((one.positional for one in many), default=0)} at most are '
          'without a keyword')
    for thing, (count, test) in DOORS.items():
        places = [str(path.relative_to(ROOT)) for path in (ROOT / 'test').rglob(test)]
        print(f'a new {thing}: {count} files, shown by {places[0] if places else "no test"}')
    print(f'a check that ships: {SHIPPED_CHECK.count(",") + 2} files: {SHIPPED_CHECK}')
    now = lines()
    print(f'lines outside the core: {now[0]}; of tests and benchmarks: {now[1]}')
    if options.against:
        before = lines(options.against)
        print(f'since {options.against}: {now[0] - before[0]:+d} and {now[1] - before[1]:+d}')
    for law in LAWS if options.path else ():
        modules = modules_of_path(law)
        print(f'{law}: {len(modules)} modules from state to command, at most {MAX_MODULES}:')
        print('\n'.join(f'    {name}' for name in modules))
    return 0


if __name__ == '__main__':
    sys.exit(main())
