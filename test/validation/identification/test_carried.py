"""A payload on a simulated machine of which some axes stand on their brakes, as `psdyn identify --payload` finds it."""

from pathlib import Path

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.model.locate import find_config, find_machine, machine_config
from psdyn_ros.validation.identify import identify_bag
from psdyn_ros.validation.simulated_run import Run, simulate_into_bag

MACHINE, MASS = 'hiab_xs031', 70.0
AXES, PERIODS = ('lift_cylinder', 'tilt_cylinder', 'telescope'), np.array([7.0, 5.0, 6.0])
LOAD = """<link name="load"><inertial><origin xyz="{}"/><mass value="{}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="weld" type="fixed"><parent link="tcp"/><child link="load"/></joint></robot>"""


def found_of(folder, place, openings, plain=False, seconds=20.0, seed=1):
    """The `Identification` of a run with MASS at a place (3,) m of the tool; openings (3,) of the valves of AXES."""
    urdf, commands = folder / 'loaded.urdf', folder / 'commands.csv'
    urdf.write_text(Path(find_machine(MACHINE)).read_text().replace(
        '</robot>', LOAD.format(' '.join(map(str, place)), MASS)))
    t = np.arange(0.0, seconds, 0.05)
    rows = np.column_stack((t, openings * np.sin(2.0 * np.pi * t[:, None] / PERIODS)))
    commands.write_text('\n'.join(','.join(map(str, row)) for row in (('time', *AXES), *rows)))
    sensors = str(find_config(f'{MACHINE}_sensors.yaml')) if plain else None
    simulate_into_bag(urdf, commands, folder / 'bag',
                      Run(hydraulics=machine_config(MACHINE, 'hydraulics'), sensors=sensors, seed=seed), quiet=True)
    return identify_bag(folder / 'bag', MACHINE, payload_link='tcp')[0]


@pytest.mark.parametrize('place, openings, seconds', thorough(
    [((0.0, 0.0, 0.3), (0.35, 0.35, 0.35), 20.0), ((0.0, 0.0, 0.0), (0.2, 0.0, 0.0), 40.0)], 1, several=True))
def test_a_payload_is_found_though_brakes_hold_it_and_whatever_moves(tmp_path, place, openings, seconds):
    (body,) = found_of(tmp_path, place, np.array(openings), seconds=seconds).bodies
    assert body.found.mass == pytest.approx(MASS, abs=2.0 * body.errors[0]) and body.errors[0] < 0.2 * MASS


@pytest.mark.parametrize('seed', thorough([1, 2, 3], 1))
def test_what_only_noise_of_sensors_excites_is_not_called_identified(tmp_path, seed):
    found = found_of(tmp_path, (0.0, 0.0, 0.0), np.array([0.0, 0.0, 0.35]), plain=True, seed=seed)
    assert [one.name for one in found.base if one.identified] == ['tcp m'], found.text
