"""The launch files under the genuine launch, launch_ros and ros2cli, where they are installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT, TESTS, URDF

pytest.importorskip('launch_testing', reason='launch_testing comes with ROS 2, not from PyPI')
pytest.importorskip('ros2launch', reason='ros2launch comes with ROS 2, not from PyPI')
packages = pytest.importorskip('ament_index_python.packages', reason='launch finds packages by it')
missing = {'psdyn_ros', 'robot_state_publisher'} - set(packages.get_packages_with_prefixes())

pytestmark = [pytest.mark.dds,
              pytest.mark.skipif(bool(missing), reason=f'not in AMENT_PREFIX_PATH: {", ".join(sorted(missing))}')]

LAUNCH = ROOT / 'launch'
CRANE = URDF / 'hiab_xs031.urdf'


def run(*words):
    path = os.pathsep.join([str(TESTS), str(ROOT), os.environ.get('PYTHONPATH', '')])
    return subprocess.run([sys.executable, '-c', *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, 'PYTHONPATH': path})


def ros2_launch(name, *arguments):
    path = str(LAUNCH / f'{name}.launch.py')
    return run('import sys; from ros2cli.cli import main; sys.exit(main())', 'launch', path, *arguments)


@pytest.mark.parametrize('name', sorted(path.name.split('.')[0] for path in LAUNCH.glob('*.launch.py')))
def test_arguments_are_shown_with_readable_defaults(name):
    done = ros2_launch(name, '--show-args')
    assert done.returncode == 0 and "'log_level':" in done.stdout and 'object at 0x' not in done.stdout


@pytest.mark.parametrize('name, arguments, says', [
    ('hil', ['level:=valv'], 'valv'), ('hil', ['machine:=hiab'], "'hiab': no such file or machine"),
    ('hil', ['law:=pid'], "'pid' is not a choice"), ('real_machine', [f'urdf:={CRANE}'], 'REPLACE'),
    ('replay', [], "'bag'"), ('replay', ['bag:=x', 'level:=effort', 'config:=none.yaml'], 'none.yaml'),
    ('replay', ['bag:=no_such_bag', 'level:=effort'], 'ros2-2 ended with exit code')])
def test_what_cannot_run_ends_the_launch_with_an_error_that_says_why(name, arguments, says):
    done = ros2_launch(name, *arguments)
    assert done.returncode == 1 and says in done.stdout, done.stdout


def test_two_machines_run_beside_each_other():
    done = run('import sys; from launch_testing.launch_test import main; sys.exit(main())',
               str(Path(__file__).with_name('two_machines.py')))
    assert done.returncode == 0, done.stdout
