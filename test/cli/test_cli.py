"""`psdyn check` on sound and on broken files: what it prints, where, and its exit code."""

import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from conftest import thorough
from support.machines import chain, hiab, tree
from support.one_loop import edit, one_loop
from support.paths import ROOT

import psdyn_ros
from psdyn_ros import cli
from psdyn_ros.cli import validate
from psdyn_ros.cli.operator._session import with_operator
from psdyn_ros.model.locate import find_config, find_machine, machine_names

URDF = ROOT / 'urdf'


@pytest.fixture
def file(tmp_path):
    def write(text, name='machine.urdf'):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path
    return write


def test_the_crane(psdyn):
    code, out, errors = psdyn('check', URDF / 'hiab_xs031.urdf')
    assert code == 0 and errors == ''
    assert out.startswith('hiab_xs031: 4 DoF, 4 actuators, 2 loops, 10 links, 1062.93 kg\n')
    for words in [
            'Tree (joint -> link)\n  base_link\n  +- slew (actuated revolute) -> pillar  [307.296 kg]',
            r'lift_barrel (passive revolute) -> lift_barrel_link  [17.363 kg]',
            r'lift_cylinder (actuated prismatic) -> lift_rod_link  [10.345 kg]  o lift_eye',
            'tcp_mount (fixed) -> tcp',
            'Modules', 'slew: revolute, -3 to 3 rad, at 0 rad it holds with',
            "lift_cylinder: loop 'lift_eye', 0 to 0.5 m, at 0.2 m it holds with",
            'telescope: prismatic, 0 to 1.1 m, at 0.3 m it holds with',
            "Loop 'lift_eye' (line ", 'lift_barrel - lift_cylinder against lift_boom',
            'barrel pin to boom pin 1.00712 m, boom pin to rod eye 0.376106 m, cylinder length 0.83 m + stroke',
            'assembly mode: q < 0', 'reachable stroke: -0.198984 to 0.553229 m; limits 0 to 0.5 m',
            'distance to toggle: 0.199 m below, 0.05323 m above the limits; at 0.2 m |sin q| = 0.992',
            "Loop 'tilt_eye' (line ", '0 warning(s)']:
        assert words in out, words
    for residual in re.findall(r'closure residual at the initial position: (\S+) m', out):
        assert float(residual) < 1e-14


def test_the_lift_of_the_crane(psdyn):
    code, out, errors = psdyn('check', URDF / 'hiab_xs031_lift.urdf')
    assert code == 0 and errors == ''
    assert out.startswith('hiab_xs031_lift: 1 DoF, 1 actuators, 1 loops, 5 links, 415.12 kg\n')
    force = psdyn_ros.load(hiab(lift_only=True).xml).gravity_forces([0.2])[0]
    assert f'at 0.2 m it holds with {force:.6g} N' in out


def test_machines_of_the_package_by_name(psdyn):
    by_name, by_file = psdyn('check', 'hiab_xs031'), psdyn('check', URDF / 'hiab_xs031.urdf')
    assert by_name[0] == by_file[0] == 0
    assert by_name[1].startswith(by_file[1]) and 'hydraulics file' in by_name[1]
    code, _, errors = psdyn('check', 'hiab_xs31')
    assert code == 2
    assert "psdyn: UnknownNameError: 'hiab_xs31': no such file or machine; did you mean 'hiab_xs031'" in errors


@pytest.mark.parametrize('machine', [tree(4, 7, cylinder_branches=True), chain(3, 'RLPLR'), one_loop(mode=1)],
                         ids=['tree', 'chain', 'loop'])
def test_every_link_joint_and_loop_is_in_the_report(machine, psdyn, file):
    code, out, _ = psdyn('check', file(machine.xml))
    manipulator = psdyn_ros.load(machine.xml)
    assert code == 0
    names = [*manipulator.links, *manipulator.machine.description.joints, *manipulator.machine.description.closures]
    assert all(re.search(rf'\b{name}\b', out) for name in names)


def test_options(psdyn, file):
    assert psdyn('check', file(one_loop(initial=('cylinder',)).xml), '--initial', 'boom=1.2')[0] == 0
    code, out, _ = psdyn('check', file(one_loop(initial=('cylinder',)).xml), '--initial', 'boom=-1.2', 'cylinder=0.1')
    assert code == 0 and 'assembly mode: q < 0' in out and 'at 0.1 m it holds' in out
    code, out, _ = psdyn('check', URDF / 'hiab_xs031_lift.urdf', '--gravity', 0, 0, 0)
    assert code == 0 and re.search(r'at 0.2 m it holds with -?0 N', out)
    bare = re.sub('<ros2_control.*</ros2_control>', '', one_loop().xml, flags=re.S)
    code, out, _ = psdyn('check', file(bare), '--initial', 'boom=1', '--actuated', 'cylinder')
    assert code == 0 and 'cylinder (actuated prismatic)' in out
    impossible = edit(one_loop().xml, ('izz="0.3"', 'izz="3.3"'))
    code, out, _ = psdyn('check', file(impossible), '--allow-unphysical')
    assert code == 0 and re.search(r"1 warning\(s\):\n  link 'rod_link' \(line \d+\): principal moments", out)
    code, _, errors = psdyn('check', file(impossible))
    assert code == 2 and "InertiaError: link 'rod_link'" in errors


def test_loops_file(psdyn, file):
    loops = file('loops:\n- {name: eye, parent: {link: rod_link, xyz: [0.4, 0, 0.02], axis: [0, 0, 1]}, '
                 'child: {link: boom_link, xyz: [0.45, 0, -0.03], rpy: [0, 0, 0.4], axis: [0, 0, 1]}}', 'loops.yaml')
    xml = re.sub('<constraint.*</constraint>', '', one_loop().xml, flags=re.S)
    code, out, _ = psdyn('check', file(xml), '--loops-file', loops)
    assert code == 0 and "Loop 'eye' (line 2 of '" in out
    code, _, errors = psdyn('check', file(xml), '--loops-file', 'missing.yaml')
    assert code == 2 and "ModelError: cannot read 'missing.yaml'" in errors


def test_a_port_that_no_computer_has_is_refused(psdyn):
    code, _, errors = psdyn('view', 'hiab_xs031', '--port', '70000')
    assert code == 2 and '70000: expected 0 to 65535' in errors


def test_warnings_are_printed(psdyn, file):
    xml = edit(one_loop(gap=5e-5, rod_sign=-1).xml, ('ixx="0.02" iyy="0.3" izz="0.3"', 'ixx="1" iyy="1" izz="1"'))
    code, out, _ = psdyn('check', file(xml))
    assert code == 0
    assert '3 warning(s):\n' in out
    assert re.search(r"\n  constraint 'eye' \(line \d+\): rod eye and boom eye are apart along the pin by 5e-05 m", out)
    assert re.search(r"\n  loop 'eye': a positive force on 'cylinder' retracts the cylinder", out)
    assert re.search(r"\n  link 'rod_link' \(line \d+\): inertia 1 kg m\^2 about all axes looks like a placeh", out)


@pytest.mark.parametrize('begin, change, says', [
    ('<joint name="hook_pitch">\n      ', '<command_interface name="effort"/>',
     "'hook_pitch' of 'loader_crane' has the effort limit 0"),
    ('<param name="initial_value">', '-2.4</param><!--', "'loader_crane' does not hang from hook_pitch, hook_roll")])
def test_why_a_controller_refuses_the_machine_is_printed(psdyn, file, begin, change, says):
    text = (URDF / 'loader_crane.urdf').read_text()
    assert 'refuses' not in psdyn('check', file(text))[1]
    at = text.index('<joint name="hook_pitch">\n      <state')
    text = text[:at] + text[at:].replace(begin, begin + change, 1).replace('<!--0.925148391531349</param>', '')
    code, out, _ = psdyn('check', file(text))
    assert code == 0 and 'A controller refuses this machine: ' in out and says in out


def test_limits_that_reach_a_toggle_point(psdyn, file):
    xml = one_loop(limits={'cylinder': (-0.3, 0.7)}).xml
    code, out, _ = psdyn('check', file(xml))
    assert code == 0
    assert "the limits of 'cylinder' (-0.3 to 0.7 m) reach a toggle point (-0.25 or 0.65 m)" in out
    assert 'distance to toggle: 0 m below, 0 m above the limits' in out


@pytest.mark.parametrize('text, words', [
    ('', 'XmlError: not well-formed XML'),
    ('not xml', 'XmlError: not well-formed XML'),
    (b'\xff\xfe\x00', 'ModelError: .* is not UTF-8 text'),
    (one_loop().xml[:400], 'XmlError: not well-formed XML: .*line'),
    ('<!DOCTYPE robot><robot/>', 'XmlError: XML with a DTD or entities is refused'),
    ('<a>' * 100, 'XmlError: line 1: elements nested deeper than 64'),
    ('<sdf/>', 'ModelError: line 1: the root element is <sdf>; a URDF has <robot>'),
    ('<robot/>', "TreeError: 'robot' has no links"),
    (one_loop().xml.replace('<parent link="rod_link"/>', '<parent link="rod_lnk"/>'),
     "UnknownNameError: link 'rod_lnk' in constraint 'eye' .*; did you mean 'rod_link'"),
    (one_loop(initial=()).xml, "AssemblyModeError: loop 'eye' .*: two assembly modes"),
    (one_loop(gap=0.1).xml, "LoopError: constraint 'eye' .*: rod eye and boom eye are apart"),
    (one_loop(initial=('boom',), limits={'cylinder': (1, 2)}).xml,
     "LoopClosureError: loop 'eye' .*: cannot close anywhere"),
    (re.sub('<ros2_control.*</ros2_control>', '', one_loop().xml, flags=re.S),
     'ActuationError: .* has no joint with a comm'),
    (one_loop().xml.replace('<mass value="12.0"/>', '<mass value="0"/>'), "InertiaError: link 'rod_link' .*: zero"),
], ids=lambda value: value[:40] if isinstance(value, str) and value.isprintable() else '')
def test_broken_files(text, words, psdyn, file):
    code, out, errors = psdyn('check', file(text))
    assert code == 2 and out == ''
    error, advice = errors.splitlines()
    words = words.replace('XmlError: ', 'XmlError: .*: ')          # the file
    assert re.match(f'psdyn: {words}', error) and advice.startswith('what to do: ')


@pytest.mark.parametrize('arguments, words', [
    (['check', 'missing.urdf'], "'missing.urdf': no such file or machine; there are: balloon, excavator, "),
    (['check', '.'], "cannot read '.'"),
    (['check', 'hiab_xs031', '--initial', 'lift_boom=down'], "--initial 'lift_boom=down': expected JOINT=POSITION"),
    (['check', 'hiab_xs031', '--initial', 'lift_boom'], "--initial 'lift_boom': expected JOINT=POSITION"),
    (['check', 'hiab_xs031', '--initial', 'lift_bom=1'], "UnknownNameError: initial position of 'lift_bom'"),
    (['check', 'hiab_xs031', '--initial', 'lift_boom=nan'], "ModelError: initial position of 'lift_boom' is nan"),
    (['check', 'hiab_xs031', '--actuated', 'tcp_mount'], "ActuationError: actuated joint 'tcp_mount' is fixed"),
    (['check', 'hiab_xs031', '--gravity', '0', '0', 'nan'], 'NonFiniteError: gravity = '),
])
def test_arguments_that_do_not_fit(arguments, words, psdyn):
    code, out, errors = psdyn(*arguments)
    assert code == 2 and out == '' and errors.startswith('psdyn: ') and words in errors


@pytest.mark.parametrize('name', thorough(machine_names(), ['hiab_xs031', 'five_bar', 'loader_crane']))
def test_every_machine_of_the_package_is_reported(name, psdyn):
    code, out, _ = psdyn('check', name, *['--allow-unphysical'] * (name in ('balloon', 'pkm_2pur2rpu')))
    manipulator = psdyn_ros.load(find_machine(name), allow_unphysical=True)
    assert code == 0 and 'nan' not in out
    for joint in (*manipulator.coordinates, *manipulator.actuators):
        assert f'\n  {joint}: ' in out
    for cluster in manipulator.machine.clusters:
        assert f"\nLoop '{cluster.name}' (line" in out
    residuals = re.findall('closure residual at the initial position: (\\S+) m', out)
    assert all(float(residual) < 1e-12 for residual in residuals)
    assert len(residuals) == out.count('\nLoop ')


def test_overconstrained_loops_are_said_to_be(psdyn):
    out = psdyn('check', 'four_bar')[1]
    assert re.search('constraints: 5 equations for 3 joints, 3 of them redundant .overconstrained, and consistent', out)
    assert re.search("crank: revolute in loop 'rocker_pivot', -11 to 14 rad, at 0.523599 rad it holds with 8.63", out)
    smallest = re.search('smallest singular value: (.*) at the initial position; over .* closed poses of its range at '
                         'least (.*), at crank = ', out)
    assert float(smallest[1]) > float(smallest[2]) > 0.1
    out = psdyn('check', 'pkm_2pur2rpu', '--allow-unphysical')[1]
    assert 'independent: slider_1, slider_2, leg_3; moves in space' in out


def test_actuators_and_coordinates_are_told_apart(psdyn):
    out = psdyn('check', 'excavator')[1]
    assert re.search('boom_cylinder_left: .* it needs (.*) N', out)[1] != \
        re.search('boom_cylinder_left: .* it holds with (.*) N', out)[1]
    out = psdyn('check', 'hiab_xs031', '--actuated', 'slew')[1]
    assert 'fewer than the 4 joint coordinates' in out
    out = psdyn('check', 'loader_crane')[1]     # a hanging load is no obstacle to control
    assert 'passive: hook_pitch, hook_roll; no actuator drives them' in out and 'no control' not in out
    assert len(re.findall('it holds with', out)) == 4 and 'at rest 0.0 kN m' in out and 'at rest -0.0' not in out
    assert 'balloon: floats, position and quaternion' in psdyn('check', 'balloon', '--allow-unphysical')[1]


@pytest.mark.parametrize('arguments', [[], ['check'], ['chek', 'hiab_xs031'], ['check', 'hiab_xs031', '--unknown'],
                                       ['check', 'hiab_xs031', '--gravity', '0', '0', 'down'], ['check', 'a', 'b']])
def test_usage(arguments, psdyn):
    code, out, errors = psdyn(*arguments)
    assert code == 2 and out == '' and errors.startswith('usage: psdyn')


def test_help_and_version(psdyn):
    for arguments in (['--help'], ['check', '--help'], ['demo', '--help']):
        code, out, _ = psdyn(*arguments)
        assert code == 0 and out.startswith('usage: psdyn')
    code, out, _ = psdyn('--version')
    assert code == 0 and re.match(r'psdyn (\d|\(not installed\))', out)


def test_mistakes_of_ours_are_told_from_mistakes_of_the_input(capsys, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError('ours')
    monkeypatch.setattr('psdyn_ros.api.load.load', broken)
    assert cli.main(['check', 'hiab_xs031']) == 70
    assert 'ZeroDivisionError: ours' in capsys.readouterr().err


def test_interrupts_end_quietly(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt
    monkeypatch.setattr('psdyn_ros.api.load.load', interrupted)
    assert cli.main(['check', 'hiab_xs031']) == 130


def process(*arguments, **options):
    return subprocess.run([sys.executable, '-m', 'psdyn_ros.cli', *map(str, arguments)], cwd=ROOT, capture_output=True,
                          text=True, timeout=240, **options)


def test_as_a_process(file):
    done = process('check', 'hiab_xs031_lift')
    assert done.returncode == 0 and done.stdout.startswith('hiab_xs031_lift: 1 DoF')
    done = process('check', file('<robot>'))
    assert done.returncode == 2 and done.stderr.startswith('psdyn: XmlError: ') and 'Traceback' not in done.stderr


def test_a_reader_that_goes_away_is_no_verdict():
    """psdyn validate BAG | head -1"""
    script = ('from psdyn_ros import cli; from psdyn_ros.cli import validate; '
              'validate._validate_one = lambda options: print("PASS" * 10**6, flush=True) or 0; '
              'raise SystemExit(cli.main(["validate", "a.mcap", "--urdf", "a.urdf"]))')
    done = subprocess.run(['bash', '-o', 'pipefail', '-c', f"'{sys.executable}' -c '{script}' | head -c 8"], cwd=ROOT,
                          capture_output=True, text=True, timeout=240)
    assert done.returncode == 128 + signal.SIGPIPE and done.stdout == 'PASSPASS' and done.stderr == ''


def test_a_reader_that_goes_away_says_nothing_of_the_bag(monkeypatch):
    def gone(options):
        raise BrokenPipeError
    monkeypatch.setattr(validate, '_validate_one', gone)
    with pytest.raises(BrokenPipeError):
        validate.run(SimpleNamespace(bag=['a.mcap'], scheduler=None))


def test_below_each_refusal_stands_what_to_do(monkeypatch, capsys):
    session = pytest.importorskip('psdyn_ros.tools.operator.session', reason='the operator is a node')
    monkeypatch.setattr(session, 'operator', lambda *_: nullcontext())

    def refused(_):
        raise session.RefusedError('/controller rejected the trajectory: point 0: 450 is beyond the limit')
    assert with_operator(SimpleNamespace(namespace='', controller='controller', timeout=1.0), 'move', refused) == 1
    assert re.search('beyond the limit\nwhat to do: [A-Z]', capsys.readouterr().err)


def test_check_prints_the_hydraulics_of_a_machine(capsys):
    assert cli.main(['check', 'hiab_xs031']) == 0
    said = capsys.readouterr().out
    assert '3 cylinders, 190 bar over 10 bar' in said
    assert 'lift_cylinder: pushes 92.1 kN, pulls 60.3 kN' in said and 'slew: no oil, safe output brake' in said
    assert 'toggle point at 0.553229 m' in said
    frequencies = [float(f) for f in said.split('on closed valves: ')[1].split(' Hz')[0].split(', ')]
    assert 1.4 < frequencies[0] < 1.8 and 4.0 < frequencies[1] < 4.4 and 20.0 < frequencies[2] < 21.5


def test_check_says_where_the_supply_cannot_hold_the_machine(tmp_path, capsys):
    weak = tmp_path / 'weak.yaml'
    text = open(find_config('hiab_xs031_hydraulics.yaml'), encoding='utf-8').read()
    weak.write_text(text.replace('pressure: 19.0e6', 'pressure: 9.0e6'))
    assert cli.main(['check', 'hiab_xs031', '--hydraulics', str(weak)]) == 0
    said = capsys.readouterr().out
    assert 'the load at lift_cylinder = 0.2 m needs 48930' in said and 'natural frequencies' not in said


def test_check_refuses_hydraulics_that_do_not_fit(tmp_path, capsys):
    wrong = tmp_path / 'wrong.yaml'
    wrong.write_text('supply: {pressure: 1.0e7}\noil: {bulk_modulus: 8.0e8}\ncylinders: {}\naxes: {}\n')
    assert cli.main(['check', 'hiab_xs031', '--hydraulics', str(wrong)]) == 2
    assert 'nothing for slew' in capsys.readouterr().err
