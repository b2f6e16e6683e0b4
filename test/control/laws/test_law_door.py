"""A law in a package of a user: found by its entry point, it drives the crane, and its gains are parameters."""

import os
import subprocess
import sys

import pytest
from support.control.foreign_law import ENTRY_POINTS, install
from support.paths import ROOT, TESTS

DRIVE = """
import numpy as np
from support.control import control_rig
control_rig.LAW['effort'] = 'spring'
control_rig.machine.cache_clear()
rig = control_rig.Rig(law_options={'frequency': 20.0}).hold()
assert type(rig.law).__module__ == 'spring_law' and (rig.law.gains.stiffness == 400.0).all()
rig.follow(control_rig.TARGET, 2.0)
errors = []
for _ in range(1100):
    rig.tick()
    errors.append(np.abs(rig.output.desired[0] - rig.plant.x).max())
print(rig.state.name, max(errors), np.abs(rig.plant.x - control_rig.TARGET).max())
"""
CHOOSE = """
import sys
from psdyn_ros.control.laws.registry import LAWS
from psdyn_ros.model.errors import PsdynError
print(*LAWS)
for name in sys.argv[1:]:
    try:
        print(LAWS[name].__name__)
    except PsdynError as error:
        print(f'{type(error).__name__}: {error}')
"""


def run(folder, code, *arguments):
    path = os.pathsep.join([str(folder), str(ROOT), str(TESTS), os.environ.get('PYTHONPATH', '')])
    done = subprocess.run([sys.executable, '-c', code, *arguments], env={**os.environ, 'PYTHONPATH': path},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_law_of_another_package_drives_the_crane(tmp_path):
    state, worst, off = run(install(tmp_path), DRIVE)[-1].split()
    assert state == 'HOLD' and float(worst) < 0.02 and float(off) < 0.01


def test_a_broken_law_is_an_error_with_its_name_and_stops_no_other(tmp_path):
    names, absent, broken, function, halfway, greedy, twice, own, spring, unknown = run(
        install(tmp_path, ENTRY_POINTS), CHOOSE, 'absent', 'broken', 'function', 'halfway', 'greedy', 'valve_pid',
        'computed_torque', 'spring', 'sprin')
    assert names.split() == ['computed_torque', 'pd_gravity', 'valve_computed_torque', 'valve_pid', 'spring', 'absent',
                             'broken', 'function', 'halfway', 'greedy']
    assert absent.startswith("ModelError: law 'absent' of no_such_module:Law: it cannot be imported: ModuleNotFound")
    assert broken == ("ModelError: law 'broken' of broken_law:Law: it cannot be imported: RuntimeError: no such thing "
                      'here')
    assert 'expected a class that derives from ControlLaw' in function
    assert halfway == "ModelError: law 'halfway' of broken_law:Halfway: it lacks freeze, predicted_efforts"
    assert "it needs 'luck'; expected among hydraulics, period" in greedy
    assert twice == "ModelError: law 'valve_pid': registered more than once: psdyn_ros, spring_law:Spring"
    assert (own, spring) == ('ComputedTorque', 'Spring')
    assert unknown.startswith("UnknownNameError: law 'sprin'") and unknown.endswith("did you mean 'spring'?")


@pytest.mark.dds
@pytest.mark.lockstep
def test_gains_of_a_law_of_another_package_are_parameters_of_the_node(tmp_path):
    pytest.importorskip('rclpy', reason='the nodes need rclpy')
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import GetParameters, SetParameters
    from support.nodes.graph import START_UP, graph

    from psdyn_ros.tools.demo.processes import exported
    path = os.pathsep.join(filter(None, [str(install(tmp_path / 'package')), os.environ.get('PYTHONPATH')]))
    with graph(tmp_path, '/foreign_law') as found:
        with exported({'PYTHONPATH': path}):
            found.start_controller('-p', 'law:=spring', '-p', 'bandwidth:=10.0')

        def gains():
            names = ['gains.slew.stiffness', 'gains.telescope.damping']
            values = found.call(GetParameters, 'controller/get_parameters', GetParameters.Request(names=names)).values
            return [value.double_value for value in values] if values and values[0].type else None
        assert found.until(gains, START_UP) == [100.0, 20.0]

        def set_to(value):
            given = Parameter(name='gains.slew.stiffness',
                              value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value))
            (result,) = found.call(SetParameters, 'controller/set_parameters',
                                   SetParameters.Request(parameters=[given])).results
            return result.successful
        assert set_to(64.0) and gains() == [64.0, 20.0]
        assert not set_to(1e5) and gains() == [64.0, 20.0]
