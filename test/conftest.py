"""The surroundings of every test: a ROS 2 network of its own, a folder for logs, and a seed that is printed.

The seed of a run is in the header of pytest. It is the same in every run, so that a failure is that of a change;
`PSDYN_SEED=random make test` draws another, `PSDYN_SEED=<seed> make test` repeats it.

`PSDYN_THOROUGH=1`, which `make test-all` sets, has Hypothesis draw five times as many examples.
"""

import os
import random
import shutil
import tempfile
import zlib

import hypothesis
import numpy as np
import pytest
from support.nodes.launch_files import launch  # noqa: F401
from support.paths import URDF

from psdyn_ros.tools.demo.processes import free_domain

# Set on import, before any test module imports rclpy or starts a process.
DOMAIN = free_domain()
LOG_DIR = tempfile.mkdtemp(prefix='psdyn_ros_test_')
SEED = os.environ.get('PSDYN_SEED') or 11
SEED = random.SystemRandom().randrange(2**32) if SEED == 'random' else int(SEED)
THOROUGH = bool(os.environ.get('PSDYN_THOROUGH'))
os.environ.pop('ROS_LOCALHOST_ONLY', None)  # it would override the range
os.environ.update(
    ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST',
    ROS_DOMAIN_ID=str(DOMAIN),
    ROS_LOG_DIR=LOG_DIR,
    PSDYN_SEED=str(SEED),  # workers that run tests side by side have the same
    ROS_PYTHON_CHECK_FIELDS='1',  # jazzy accepts a wrong field of a message in silence otherwise
    PYTHONFAULTHANDLER='1',  # a process that crashes says where
    MPLBACKEND='Agg',
)


def examples(count):
    """Return how many examples Hypothesis draws where `count` are drawn in a thorough run."""
    return count if THOROUGH else max(10, count // 5)


def thorough(values, quick, several=False):
    """Return parameters of a test: those in `quick`, or so many of the first ones, in every run, the others `long`.

    values  parameters, each of which proves the same of another machine or state; tuples of them where `several`
    """
    chosen = values[:quick] if isinstance(quick, int) else quick
    return [value if value in chosen else pytest.param(*(value if several else (value,)), marks=pytest.mark.long)
            for value in values]


# No deadline: the first example of a test may compile a kernel.
for name, count in (('quick', 20), ('thorough', 100)):
    hypothesis.settings.register_profile(name, deadline=None, derandomize=False, print_blob=True, max_examples=count)
hypothesis.settings.load_profile('thorough' if THOROUGH else 'quick')


# Files with few tests that take long: begun last, they would leave the other worker with nothing to do.
SLOWEST = ('test_record_demo', 'test_tutorials', 'test_demo', 'test_rig_demo', 'test_stream_tracking',
           'test_other_sensors', 'test_papers', 'test_figure_door', 'test_lying_sensors', 'test_bag_validate_memory',
           'test_tracking_bounds', 'test_control', 'test_kernels_control', 'test_general_nodes', 'test_api_inputs',
           'test_identification', 'test_load_chart', 'test_jacobian', 'test_lock_step_by_hand', 'test_effort_of_bags',
           'test_failing_laws', 'test_nodes_dds', 'test_trajectory_rates', 'test_hanging_demo', 'test_sensor_door',
           'test_trusted_verdict', 'test_campaign', 'test_diagnosis', 'test_oracle', 'test_dynamics',
           'test_pages_in_chromium', 'test_swing_damping', 'test_speed_governor', 'test_topology', 'test_forwarder',
           'test_compile_cache', 'test_fleet', 'test_controller_node', 'test_law_inputs', 'test_contradicted_motion',
           'test_ros2_control', 'test_simulated_run', 'test_loop_hints', 'test_topic_delays', 'test_mutation',
           'test_command_interfaces', 'test_bag_validate', 'test_hydraulic_solver')


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    # Ahead of Hypothesis' own hook, which reads the option; one given on the command line stays.
    if config.getoption('hypothesis_seed', None) is None:
        config.option.hypothesis_seed = str(SEED)


def pytest_collection_modifyitems(items):
    order = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


def pytest_report_header():
    profile = hypothesis.settings.get_current_profile_name()
    return f'psdyn_ros: PSDYN_SEED={SEED}, ROS_DOMAIN_ID={DOMAIN}, examples: {profile}'


def pytest_unconfigure():
    shutil.rmtree(LOG_DIR, ignore_errors=True)


def seeded_generator(name):
    """Random numbers that depend on the seed of the run and on a name, not on the order of tests."""
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


@pytest.fixture
def rng(request):
    return seeded_generator(request.node.nodeid)


@pytest.fixture(scope='session')
def crane():
    """The crane of the package, which no test changes."""
    from psdyn_ros import load  # not on import: scripts/mutation.py imports this file before it changes modules
    return load(URDF / 'hiab_xs031.urdf')


@pytest.fixture(scope='module')
def hydraulics(crane):
    """Those of the crane."""
    from psdyn_ros.model.locate import find_config
    from psdyn_ros.model.parameters.hydraulics import read_hydraulics
    return read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), crane.actuators)


@pytest.fixture
def psdyn(capsys):
    """Run the command line in this process; return (exit code, stdout, stderr)."""
    from support.one_loop import one_loop

    from psdyn_ros import cli, load
    load(one_loop().xml)        # a first load may say that it compiles

    def run(*arguments):
        capsys.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as end:       # usage, --help and --version
            code = end.code
        out, errors = capsys.readouterr()
        assert 'Traceback' not in errors
        return code, out, errors
    return run
