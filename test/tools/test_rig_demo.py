"""A cylinder on a rig: `psdyn demo --rig`, and the commands of its page."""

import os
import re
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest
from support.paths import ROOT

pytest.importorskip('rclpy')

from sensor_msgs.msg import JointState
from support.nodes.graph import START_UP, graph

from psdyn_ros import cli
from psdyn_ros.nodes.messages import conversions
from psdyn_ros.nodes.messages.conversions import stamp_to_ns
from psdyn_ros.tools.demo.session import PlantState
from psdyn_ros.validation.bags.recording import read_messages
from psdyn_ros.validation.metrics import PASS
from psdyn_ros.validation.report import split
from psdyn_ros.validation.validate import validate

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

PAGE = (ROOT / 'docs' / 'how-to' / 'actuator_under_test.md').read_text().split('## ')[0]
COMMANDS = re.findall(r'^    (\S(?:\\\n|.)*)', PAGE, re.MULTILINE)
# stand for an installation: the same words start the same modules
SHIMS = {'psdyn': 'exec {python} -m psdyn_ros.cli "$@"',
         'ros2': '[ "$1 $2" = "run psdyn_ros" ] || exit 64\nname=$3\nshift 3\n'
                 'exec {python} -c "import sys; from runpy import run_module; from psdyn_ros.nodes import EXECUTABLES; '
                 'run_module(EXECUTABLES[sys.argv.pop(1)], run_name=\'__main__\')" $name "$@"'}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    for name, script in SHIMS.items():
        path = tmp_path / 'bin' / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('#!/bin/sh\n' + script.format(python=shlex.quote(sys.executable)) + '\n')
        path.chmod(0o755)
    monkeypatch.setenv('PATH', f'{tmp_path / "bin"}:{os.environ["PATH"]}')
    monkeypatch.setenv('PYTHONPATH', str(ROOT))


@pytest.mark.long
def test_the_nodes_of_the_page_find_each_other(installed, tmp_path):
    commands = [command for command in COMMANDS if command.startswith('ros2')]
    assert len(commands) == 2
    with graph(tmp_path, '') as g:
        processes = [subprocess.Popen(f'exec {command}', shell=True, cwd=ROOT) for command in commands]
        try:
            g.until(lambda: g.report('rig: lift_cylinder')[1] == 'following', START_UP)
            # held where it is by what the rig measures, and by its model no longer
            measured = g.listen(JointState, 'simulator/measured/lift_cylinder')
            g.until(lambda: measured and g.report('simulator: plant')[2], 20.0)
        finally:
            for process in processes:
                process.send_signal(signal.SIGINT)
            assert [process.wait(30.0) for process in processes] == [0, 0]


@pytest.mark.long
@pytest.mark.parametrize('command', [command for command in COMMANDS if command.startswith('psdyn')])
def test_a_demonstration_of_the_page_runs_and_its_code_is_its_verdict(installed, tmp_path, command):
    done = subprocess.run(command, shell=True, cwd=tmp_path, text=True, capture_output=True)
    verdict = re.search(r'^(PASS|FAIL): .*$', done.stdout, re.MULTILINE)
    assert verdict and done.returncode == {'PASS': 0, 'FAIL': 1}[verdict[1]], done
    # on the clock a computer that stalls for longer than `ttl` has the cylinder frozen, which fails
    assert verdict[1] == 'PASS' or '--real-time' in command, done
    assert verdict[0] in (tmp_path / 'demo_output' / 'report.html').read_text()


def test_a_cylinder_that_froze_fails_the_run_in_terminal_and_report(tmp_path):
    class Node:
        def create_subscription(self, kind, topic, callback, depth):
            self.callback = callback

    node = Node()
    state = PlantState(node)
    frozen = 'lift_cylinder frozen: no measurement for 201 ms'
    for summary in ('running', f'running; {frozen}', 'running; tilt_cylinder frozen: later', 'running'):
        node.callback(conversions.diagnostics_msg(0, 'simulator: plant', 'warn', summary, {}))
    assert state.frozen == frozen and state.summary == 'running'
    time = np.arange(0.0, 1.0, split.STEP)
    rows = np.column_stack([time])
    result = split.Split('crane', 'lift_cylinder', 1.0, time, rows, rows,
                         {'whole': (time, time), 'split': (time, time)},
                         (split.Deviation('lift_cylinder', 'm', 1.0, 0.0, 0.0, (1e-3, 3e-3)),), {}, state.frozen)
    assert result.verdict == f'FAIL: {frozen}; from there on the rig no longer moved the load.'
    assert result._replace(frozen='').verdict.startswith('PASS')
    assert frozen in split.write_report(tmp_path, result).read_text()


@pytest.mark.long
@pytest.mark.parametrize('cylinder', ['lift_cylinder', 'telescope'])
def test_the_split_machine_follows_the_whole_one_in_lock_step(tmp_path, capfd, cylinder):
    code = cli.main(['demo', '--rig', cylinder, '--duration', '3', '--output', str(tmp_path)])
    said = capfd.readouterr()
    assert code == 0, said
    assert f'PASS: with {cylinder} on the rig every actuator moves as in the whole machine' in said.out
    page = (tmp_path / 'report.html').read_text()
    assert f'<h1>hiab_xs031 with {cylinder} on a rig</h1>' in page and (tmp_path / 'split.png').is_file()
    topic = f'/simulator/measured/{cylinder}'
    stamps = [stamp_to_ns(message.header.stamp) for message in read_messages(tmp_path / 'split', [topic])[topic]]
    # one answer to each instant, none left out
    assert len(stamps) > 1400 and {b - a for a, b in zip(stamps, stamps[1:])} == {2_000_000}
    # of 3 s a busy computer takes longer to receive them, by more than a tenth
    settings = 'machine:\n  motion: 1.0\n  coverage: 0.8\n'
    assert validate(tmp_path / 'whole', 'hiab_xs031', config=settings).verdict.text == (
        f'{PASS}: every figure is within its tolerance')
    assert validate(tmp_path / 'split', 'hiab_xs031', config='machine:\n  motion: 1.0\n').verdict.verdict == PASS


@pytest.mark.long
def test_a_rig_with_a_supply_of_its_own_is_another_machine_whose_bags_pass(tmp_path, capfd):
    code = cli.main(['demo', '--machine', 'excavator', '--rig', 'boom_cylinder_left', '--output', str(tmp_path)])
    said = capfd.readouterr()
    assert code == 1, said
    assert ('left the whole machine by more than the bound; its cylinders share a pump of limited flow, and the rig '
            'has a supply of its own.') in said.out
    for name in ('whole', 'split'):
        assert validate(tmp_path / name, 'excavator').verdict.text == f'{PASS}: every figure is within its tolerance'


@pytest.mark.parametrize('arguments, says', [
    (['--rig', 'lift'], "cylinder 'lift': no such cylinder"),
    (['--rig', 'lift_cylinder', '--machine', 'five_bar'], "no hydraulics are known of this machine"),
    (['--level', 'valve', '--machine', 'five_bar'], "no hydraulics are known of this machine"),
])
def test_what_it_cannot_use_ends_it_with_two(tmp_path, capfd, arguments, says):
    assert cli.main(['demo', *arguments, '--output', str(tmp_path)]) == 2
    assert says in capfd.readouterr().err
