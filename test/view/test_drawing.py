"""The structure of a machine as SVG: every link, joint and closure once, and no line through a box of another."""

import re
from xml.etree import ElementTree

import pytest
from conftest import thorough
from support.machines import URDF
from support.parallel_robots import delta_robot

from psdyn_ros import cli
from psdyn_ros.api.load import load
from psdyn_ros.view.drawing import COLORS, drawing

MACHINES = ('hiab_xs031', 'excavator', 'pkm_2pur2rpu', 'loader_crane', 'delta')
SVG = '{http://www.w3.org/2000/svg}'


@pytest.fixture(scope='module', params=thorough(MACHINES, 2))
def drawn(request):
    """Return (manipulator, SVG element) of a machine."""
    m = load(delta_robot().xml if request.param == 'delta' else URDF / f'{request.param}.urdf')
    return m, ElementTree.fromstring(drawing(m))


def boxes(svg):
    """Return {name: (left, top, right, bottom)}."""
    found = {}
    for group in svg.iter(f'{SVG}g'):
        x, y, width, height = (float(group.find(f'{SVG}rect').get(key)) for key in ('x', 'y', 'width', 'height'))
        found[group.find(f'{SVG}text').text] = x, y, x + width, y + height
    return found


def corners(path):
    """Return the corners of a path of straight lines."""
    (x, y), found = map(float, re.match(r'M([\d.-]+) ([\d.-]+)', path).groups()), []
    found.append((x, y))
    for kind, value in re.findall(r'([HV])([\d.-]+)', path):
        x, y = (float(value), y) if kind == 'H' else (x, float(value))
        found.append((x, y))
    return found


def test_every_link_joint_and_closure_is_drawn_once_and_apart(drawn):
    m, svg = drawn
    description = m.machine.description
    found = boxes(svg)
    assert len(list(svg.iter(f'{SVG}g'))) == len(found)
    assert set(found) == {*description.links, *description.joints, *description.closures}
    placed = list(found.values())
    for k, (x0, y0, x1, y1) in enumerate(placed):
        assert 0.0 <= x0 and x1 <= float(svg.get('width')) and y1 <= float(svg.get('height'))
        assert not any(x0 < right and left < x1 and y0 < low and high < y1 for left, high, right, low in placed[:k])


def test_lines_of_closures_run_between_the_boxes_to_their_link(drawn):
    m, svg = drawn
    found = boxes(svg)
    dashed = [corners(path.get('d')) for path in svg.iter(f'{SVG}path') if path.get('stroke-dasharray')]
    assert len(dashed) == len(m.loops)
    ends = {name: (closure.parent, closure.child) for name, closure in m.machine.description.closures.items()}
    for line in dashed:
        (x, y), near = line[0], 0.2         # px of rounding
        start, = (name for name in ends if abs(found[name][2] - x) < near and found[name][1] < y < found[name][3])
        x, y = line[-1]
        left, high, right, low = found[ends[start][0]]
        assert left < x < right and min(abs(y - high), abs(y - low)) < near
        for (x0, y0), (x1, y1) in zip(line, line[1:]):
            for name, (left, high, right, low) in found.items():
                crosses = (min(x0, x1) < right - near and max(x0, x1) > left + near
                           and min(y0, y1) < low - near and max(y0, y1) > high + near)
                assert not crosses, f'the line of {start} crosses {name}'


def test_joints_of_two_loops_have_two_lines():
    svg = drawing(load(URDF / 'excavator.urdf'))
    assert all(svg.count(f'stroke="{color}"') > 3 for color in COLORS[:5])
    assert COLORS[5] not in svg


def test_names_cannot_leave_their_place():
    text = (URDF / 'hiab_xs031.urdf').read_text().replace('lift_boom_link', '&lt;b&gt;&amp;')
    assert '&lt;b&gt;&amp;' in drawing(load(text)) and '<b>' not in drawing(load(text))


def test_check_writes_a_page_beside_its_report(tmp_path, capsys):
    path = tmp_path / 'crane.html'
    assert cli.main(['check', 'loader_crane', '--html', str(path)]) == 0
    page = path.read_text()
    assert 'passive: moves freely' in page and '<svg' in page and 'srcdoc="' in page
    assert capsys.readouterr().out.split('\n')[0] in page
