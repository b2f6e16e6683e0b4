"""The pages on extending the package: their changes are applied to a copy of it, and their scripts run there."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from support.paths import ROOT

JOINT, LOOPS = (ROOT / 'docs' / 'how-to' / page for page in ('extending.md', 'extending_loops.md'))
IN_THE_COPY = 'import sys, psdyn_ros\nassert psdyn_ros.__file__ == sys.argv[1], psdyn_ros.__file__\n'
SCREW = '''
import psdyn_ros
INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.3" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>'
def loaded(pitch, constraint=''):
    try:
        m = psdyn_ros.load(f"""<robot name="m"><link name="base"/><link name="nut">{INERTIAL}</link>
            <link name="crank">{INERTIAL}</link>
            <joint name="lift" type="screw" {pitch}><parent link="base"/><child link="nut"/></joint>
            <joint name="turn" type="continuous"><parent link="base"/><child link="crank"/></joint>
            {constraint}</robot>""", actuated=['lift'])
    except psdyn_ros.PsdynError as error:
        return f'{type(error).__name__}: {error}'
    return list(m.machine.warnings)
'''


def blocks(page, language):
    return re.findall(rf'^```{language}\n(.*?)^```', page.read_text(), re.DOTALL | re.MULTILINE)


def apply(block, folder):
    """Apply a unified diff strictly; raise AssertionError with the file that it does not fit."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith('GIT_')}
    done = subprocess.run(['git', 'apply', '-'], input=block, cwd=folder, text=True, capture_output=True,
                          env={**environment, 'GIT_CEILING_DIRECTORIES': str(folder.parent)})
    assert done.returncode == 0, done.stderr


def copy(folder, page=None, left_out=None):
    """Return a folder with a copy of the package, changed as a page says; left_out: a block that is not applied."""
    shutil.copytree(ROOT / 'psdyn_ros', folder / 'psdyn_ros', ignore=shutil.ignore_patterns('__pycache__'))
    for block in blocks(page, 'diff') if page else ():
        if block != left_out:
            apply(block, folder)
    return folder


def run(script, folder):
    """Run a script with the copy of the package in a folder, as plain Python; return the finished process."""
    return subprocess.run(
        [sys.executable, '-c', IN_THE_COPY + script, str(folder / 'psdyn_ros' / '__init__.py')], cwd=folder, text=True,
        capture_output=True, timeout=200, env={**os.environ, 'NUMBA_DISABLE_JIT': '1', 'PYTHONDONTWRITEBYTECODE': '1'})


def output(script, folder):
    done = run(script, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope='module')
def original(tmp_path_factory):
    return copy(tmp_path_factory.mktemp('original'))


@pytest.fixture(scope='module')
def with_screw(tmp_path_factory):
    return copy(tmp_path_factory.mktemp('screw'), JOINT)


def test_screw_joint_agrees_with_its_twin(with_screw):
    script, = blocks(JOINT, 'python')
    assert output(script, with_screw) == 'the screw joint agrees with its twin\n'


def test_screw_joint_is_unknown_before(original):
    script, = blocks(JOINT, 'python')
    assert "type 'screw' is not supported" in run(script, original).stderr


def test_pitch_is_read_without_a_warning_and_its_absence_refused(with_screw):
    assert output(SCREW + '''print(loaded('pitch="0.1"'))''', with_screw) == '[]\n'
    refused = output(SCREW + "print(loaded(''))", with_screw)
    assert refused == "ModelError: joint 'lift' (line 3): attribute 'pitch' of <joint> is missing\n"


def test_screw_in_a_loop_is_refused(with_screw):
    constraint = '<constraint name="pin" type="revolute"><parent link="nut"/><child link="crank"/></constraint>'
    refused = output(SCREW + f'''print(loaded('pitch="0.1"', {constraint!r}))''', with_screw)
    assert refused == "LoopError: joint 'lift' is a screw; joints of loops are revolute or prismatic\n"


@pytest.mark.long
def test_slider_crank_closes_by_iteration_before_and_in_closed_form_after(original, tmp_path):
    script, = blocks(LOOPS, 'python')
    lines = 'rod on the crank: {0} of 1 pins in closed form\nrod on the block: {0} of 1 pins in closed form\n'
    assert output(script, original) == lines.format(0)
    assert output(script, copy(tmp_path, LOOPS)) == lines.format(1)


@pytest.mark.long
@pytest.mark.parametrize('page, number', [
    (page, number) for page in (JOINT, LOOPS) for number in range(len(blocks(page, 'diff')))],
    ids=lambda value: getattr(value, 'stem', str(value)))
def test_every_block_is_needed(page, number, tmp_path):
    script, = blocks(page, 'python')
    done = run(script, copy(tmp_path, page, left_out=blocks(page, 'diff')[number]))
    assert done.returncode != 0 or '0 of 1' in done.stdout


def test_a_block_that_no_longer_fits_is_refused_with_its_file(tmp_path):
    block = blocks(LOOPS, 'diff')[0]
    file = re.search(r'^--- a/(\S+)', block)[1]
    copy(tmp_path)
    text = (tmp_path / file).read_text()
    (tmp_path / file).write_text(text.replace('PARALLEL = 0, 1, 2, 3', 'PARALLEL = 3, 2, 1, 0'))
    with pytest.raises(AssertionError, match=rf'{file}.*does not apply'):
        apply(block, tmp_path)
