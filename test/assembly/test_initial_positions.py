"""Declared initial positions of joints in clusters are kept where they close, and a warning names what moves."""

import re

import pytest
from support.paths import ROOT

import psdyn_ros

# without the positions of the passive joints of its bucket, as a first URDF of an excavator has none
EXCAVATOR = re.sub(r'<joint name="(bucket|bucket_barrel|rocker|coupler)">\s*<state_interface.*?</joint>', '',
                   (ROOT / 'urdf' / 'excavator.urdf').read_text(), flags=re.DOTALL)
FOUR_BAR = (ROOT / 'urdf' / 'four_bar.urdf').read_text()


def positions(m):
    names, values, *_ = m.joint_state(m.initial_position)
    return dict(zip(names, values))


def starts_elsewhere(m):
    return [warning for warning in m.machine.warnings if 'it starts at' in warning]


@pytest.mark.parametrize('stroke', [0.05, 0.3, 0.55, 0.8, 1.0])
def test_a_declared_stroke_is_kept_with_no_other_joint_of_its_loops_declared(stroke):
    xml, count = re.subn(r'(<joint name="bucket_cylinder">.*?"initial_value">)[^<]*', rf'\g<1>{stroke}', EXCAVATOR,
                         flags=re.DOTALL)
    assert count == 1
    for m in (psdyn_ros.load(xml), psdyn_ros.load(EXCAVATOR, initial={'bucket_cylinder': stroke})):
        found = positions(m)
        assert found['bucket_cylinder'] == stroke and not starts_elsewhere(m)
        cluster = next(one for one in m.machine.clusters if 'bucket' in one.joints)
        for name in cluster.joints:
            joint = cluster.entries[name][0]
            assert joint.lower - 1e-9 <= found[name] <= joint.upper + 1e-9


def test_passive_joints_only_choose_the_mode_beside_an_actuator():
    start = positions(psdyn_ros.load(FOUR_BAR))
    crossed = psdyn_ros.load(FOUR_BAR, initial={'crank': start['crank'], 'coupler': -1.3, 'rocker': 2.2})
    assert positions(crossed)['crank'] == start['crank']
    assert positions(crossed)['rocker'] == pytest.approx(2.288972884144962, abs=1e-9)
    warning, = starts_elsewhere(crossed)
    assert re.search('it starts at coupler = -1.36483, not -1.3, rocker = 2.28897, not 2.2$', warning)


def test_a_position_at_which_the_loop_does_not_close_is_told_with_the_one_taken():
    wide = re.sub(r'(<joint name="bucket_cylinder" type.*?<limit[^>]*upper=")[^"]*', r'\g<1>9', EXCAVATOR,
                  flags=re.DOTALL)
    m = psdyn_ros.load(wide, initial={'bucket_cylinder': 5.0})
    taken = positions(m)['bucket_cylinder']
    assert taken < 4.0
    warning, = starts_elsewhere(m)
    assert warning.endswith(f'it starts at bucket_cylinder = {taken:.6g}, not 5')
