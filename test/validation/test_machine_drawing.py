"""The picture of a motion: a machine where its links are, ghosts that differ, times beside the path of the tool."""

import re

import numpy as np
import pytest
from conftest import thorough
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from support.cases import machine
from support.machines import URDF

from psdyn_ros.api.load import load
from psdyn_ros.model.mechanism.urdf import read
from psdyn_ros.validation.diagnosis.diagnosis import Cause
from psdyn_ros.validation.report.machine_drawing import MAX_GHOSTS, View, _start, draw, motion_picture, shapes_of
from psdyn_ros.validation.report.validation_report import suspected_links
from psdyn_ros.view.motion import simulated_motion

MACHINES = ('hiab_xs031', 'excavator', 'five_bar', 'pkm_2pur2rpu', 'loader_crane', 'delta')
SECONDS = 12.0


def there_and_back(m, travel):
    """Return the `Motion` of a machine whose coordinates go `travel` and come back."""
    time = np.linspace(0.0, SECONDS, 241)
    share = 0.5 - 0.5 * np.cos(2.0 * np.pi * time / SECONDS)
    return simulated_motion(m, time, m.initial_position + share[:, None] * np.asarray(travel))


def drawn(m, motion):
    """Return (axes, times written in it) of the picture of a motion."""
    figure = motion_picture(m, motion, m.name)
    FigureCanvasAgg(figure).draw()
    return figure.axes[0], [float(text.get_text()[:-2]) for text in figure.axes[0].texts]


@pytest.mark.parametrize('name, slews, across', thorough([
    ('hiab_xs031', True, 'reach [m]'), ('excavator', True, 'reach [m]'), ('five_bar', False, 'x [m]'),
    ('pkm_2pur2rpu', False, 'y [m]'), ('balloon', False, 'x [m]')], 3, several=True))
def test_a_machine_is_seen_from_where_it_is_large(name, slews, across):
    view = View(machine(name))
    assert (view.slews, view.across) == (slews, across)


def test_slewing_does_not_show_and_the_telescope_does():
    crane = machine('hiab_xs031')
    view, start = View(crane), _start(crane)
    x = crane.initial_position
    for travel, shown in (((2.0, 0.0, 0.0, 0.0), 0.0), ((-2.5, 0.0, 0.0, 0.3), 0.3)):
        poses = {link: crane.link_pose(x + travel, link)[None] for link in crane.links}
        there, before = (view.seen('telescope_link', np.zeros((1, 3)), where) for where in (poses, start))
        assert np.linalg.norm(there - before) == pytest.approx(shown, abs=1e-9)


def test_every_shape_is_drawn_once():
    crane = machine('hiab_xs031')
    shapes, axes = shapes_of(crane.machine.description), Figure().subplots()
    assert {shape.link for shape in shapes} >= {'base_link', 'pillar', 'lift_boom_link', 'telescope_link'}
    draw(axes, shapes, View(crane), _start(crane))
    assert len(axes.patches) == len(shapes)


@pytest.mark.parametrize('name', thorough(MACHINES, 2))
def test_times_do_not_cover_each_other_and_stay_in_the_picture(name):
    m = machine(name)
    axes, times = drawn(m, there_and_back(m, 0.02 if name == 'pkm_2pur2rpu' else 0.15))
    boxes = [text.get_window_extent() for text in axes.texts]
    frame = axes.get_window_extent()
    assert 1 < len(times) <= 1 + MAX_GHOSTS and times[0] == 0.0
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in boxes)


def test_poses_of_the_way_back_are_drawn_on_the_way_out_only():
    _, times = drawn(machine('hiab_xs031'), there_and_back(machine('hiab_xs031'), (0.0, 0.25, 0.2, 0.6)))
    assert len(times) > 2 and max(times) <= 0.5 * SECONDS


def test_a_machine_that_stands_is_drawn_once():
    crane = machine('hiab_xs031')
    axes, times = drawn(crane, there_and_back(crane, 0.0))
    assert times == [0.0] and len(axes.patches) == len(shapes_of(crane.machine.description))


def test_the_path_is_that_of_the_tool():
    crane = machine('hiab_xs031')
    axes, _ = drawn(crane, there_and_back(crane, (1.0, 0.0, 0.0, 0.4)))
    path = next(line for line in axes.lines if line.get_label() == 'path of the tool').get_xydata()
    assert np.linalg.norm(path - path[0], axis=1).max() == pytest.approx(0.4, abs=1e-6)


def test_a_machine_without_visuals_is_drawn_as_bars():
    text = (URDF / 'hiab_xs031.urdf').read_text()
    bare = load(re.sub(r'<visual>.*?</visual>', '', text, flags=re.DOTALL))
    axes, times = drawn(bare, there_and_back(bare, (0.0, 0.2, 0.2, 0.5)))
    assert len(axes.patches) > len(bare.links) and len(times) > 1


def test_shapes_are_where_their_origin_says():
    box, cylinder, sphere = shapes_of(read(
        '<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material><link name="a">'
        '<visual><origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><geometry><box size="2 4 6"/></geometry>'
        '<material name="red"/></visual>'
        '<visual><geometry><cylinder radius="0.5" length="2"/></geometry></visual>'
        '<visual><geometry><sphere radius="0.5"/></geometry></visual></link></robot>'))
    assert box.points.min(axis=0) == pytest.approx([-1, 1, 0]) and box.points.max(axis=0) == pytest.approx([3, 3, 6])
    assert tuple(box.color) == (1, 0, 0, 1)
    assert np.hypot(*cylinder.points[:, :2].T) == pytest.approx(0.5) and np.ptp(cylinder.points[:, 2]) == 2.0
    assert np.linalg.norm(sphere.points, axis=1) == pytest.approx(0.5)


@pytest.mark.parametrize('kind, about, links', [
    ('sensor_offset', 'tilt_cylinder', ('tilt_barrel_link', 'tilt_rod_link')),
    ('payload', 'tcp', ('tcp',)), ('encoder_scale', 'slew', ('pillar',)),
    ('delay', '/simulator/hydraulic_telemetry', ()),
    ('base_tilt', 'base', ('base_link',))])
def test_part_that_is_suspected_is_outlined(kind, about, links):
    crane = machine('hiab_xs031')
    cause = Cause(kind, about, 0.9, 0.8, 1.0, 1.0, 0.1, '1', '')
    marked = suspected_links(crane, cause)
    assert marked == links
    motion = there_and_back(crane, (0.0, 0.1, 0.1, 0.2))
    plain, found = (motion_picture(crane, motion, '', some, 'suspected').axes[0] for some in ((), marked))
    said = [text.get_text() for text in found.get_legend().get_texts()]
    assert ('suspected' in said) == bool(marked)
    assert len(found.patches) + len(found.lines) > len(plain.patches) + len(plain.lines) or not marked
