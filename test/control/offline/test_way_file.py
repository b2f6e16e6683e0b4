"""Files of way points: positions and poses are reached; what is wrong is named with its entry."""

from functools import cache

import numpy as np
import pytest
from support.paths import ROOT

import psdyn_ros
from psdyn_ros import ModelError, StateError, UnknownNameError
from psdyn_ros.control.offline.planned_motion import plan_motion
from psdyn_ros.control.offline.time_optimal import limits_of, path_curve
from psdyn_ros.control.offline.way_file import SPACING, read_way


@cache
def crane():
    return psdyn_ros.load(str(ROOT / 'urdf' / 'hiab_xs031.urdf'))


def read(tmp_path, text):
    file = tmp_path / 'way.yaml'
    file.write_text(text)
    return read_way(file, crane())


def test_points_keep_what_they_do_not_name(tmp_path):
    rows = read(tmp_path, 'start: {slew: 0.1}\npoints: [{telescope: 0.4}, {slew: 0.5}]')
    expected = np.tile(crane().initial_position, (3, 1))
    expected[:, 0], expected[1:, 3] = (0.1, 0.1, 0.5), 0.4
    np.testing.assert_array_equal(rows, expected)


def test_poses_are_reached_on_straight_lines(tmp_path):
    rows = read(tmp_path, 'link: tcp\nstraight: true\nposes: [{position: [2.6, 0.6, 0.9]}]')
    places = np.array([crane().link_pose(x, 'tcp')[:3, 3] for x in rows])
    np.testing.assert_allclose(places[-1], (2.6, 0.6, 0.9), atol=1e-7)
    line = places[-1] - places[0]
    away = np.cross(places - places[0], line / np.linalg.norm(line))
    assert np.abs(away).max() < 1e-6 and len(rows) == 1 + np.ceil(np.linalg.norm(line) / SPACING)


@pytest.mark.parametrize('via, end', [((2.7, 0.5, 0.7), (2.4, 1.0, 0.9)), ((2.95, 0.2, 0.3), (2.6, 0.3, 0.2))])
def test_poses_are_reached_on_arcs(tmp_path, via, end):
    rows = read(tmp_path, f'link: tcp\nposes: [{{position: {list(end)}, via: {list(via)}}}]')
    places = np.array([crane().link_pose(x, 'tcp')[:3, 3] for x in rows])
    # the plane and the centre, equally far from the three points, by least squares
    begin, three = places[0], np.array([places[0], via, end])
    normal = np.cross(three[1] - begin, three[2] - begin)
    rows_of = np.vstack((2.0 * (three[1:] - begin), normal))
    centre = np.linalg.solve(rows_of, [*(np.sum(three[1:] ** 2, axis=1) - begin @ begin), normal @ begin])
    radius = np.linalg.norm(begin - centre)
    dense = np.array([crane().link_pose(x, 'tcp')[:3, 3] for x in path_curve(crane(), rows)(np.linspace(0, 1, 400))])
    for points, bound in ((places, 1e-6), (dense, 1e-3)):       # m
        assert abs(np.linalg.norm(points - centre, axis=1) - radius).max() < bound
        assert abs((points - centre) @ normal).max() < bound * np.linalg.norm(normal)
    assert np.linalg.norm(dense - via, axis=1).min() < 0.005 and np.linalg.norm(dense[-1] - end) < 1e-6


def test_a_full_speed_arc_is_planned_like_any_path(tmp_path):
    rows = read(tmp_path, 'link: tcp\nposes: [{position: [2.4, 1.0, 0.9], via: [2.7, 0.5, 0.7]}]')
    motion = plan_motion(crane(), rows, limits_of(crane(), acceleration=np.full(4, 1.0)))
    np.testing.assert_allclose(crane().link_pose(motion.x[-1], 'tcp')[:3, 3], (2.4, 1.0, 0.9), atol=1e-6)
    assert motion.use.max() <= 1.001


@pytest.mark.parametrize('nodes', [200, 300])
def test_a_path_that_turns_back_is_planned(tmp_path, nodes):
    """There and back on an arc: at the corner some timings are at rest at a node."""
    rows = read(tmp_path, 'link: tcp\nstraight: true\nposes: [{position: [2.6, 0.6, 0.9]}, '
                          '{position: [2.4, 1.6, 1.2]}, {position: [2.4, 0.6, 0.9], via: [2.6, 1.1, 1.05]}]')
    motion = plan_motion(crane(), rows, limits_of(crane(), acceleration=np.full(4, 1.0)), nodes=nodes)
    np.testing.assert_allclose(crane().link_pose(motion.x[-1], 'tcp')[:3, 3], (2.4, 0.6, 0.9), atol=1e-6)
    assert motion.use.max() <= 1.001 and motion.duration < 20.0


def test_pose_out_of_reach_is_named_with_what_is_missing(tmp_path):
    with pytest.raises(StateError, match=r"pose 1: .*'tcp'.* m"):
        read(tmp_path, 'link: tcp\nposes: [{position: [2.6, 0.6, 0.9]}, {position: [9, 0, 1]}]')


@pytest.mark.parametrize('text, error, says', [
    ('- 1', ModelError, 'expected a mapping with start, points, link, straight, poses'),
    ('{points: [], link: tcp', ModelError, 'is not YAML'),
    ('points: [{slew: 0.1}]\npoints: [{slew: 0.2}]', ModelError, "'points' is there twice(.|\\n)*line 2"),
    ('points: [{slew: 0.1, slew: 0.2}]', ModelError, "'slew' is there twice"),
    ('start: &here {slew: 0.1}\npoints: [*here]', ModelError, 'an alias; expected its contents written out'),
    ('[' * 100_000, ModelError, 'more than 100 lists and mappings in each other'),
    ('- ' * 100_000, ModelError, 'more than 100 lists and mappings in each other'),
    ('a: &a [1, 1]\nb: &b [*a, *a]\nc: [*b, *b]', ModelError, 'an alias'),
    ('link: tcp', ModelError, "expected either 'points' or 'poses'"),
    ('{points: [{}], poses: [{}]}', ModelError, "expected either 'points' or 'poses'"),
    ('points: []', ModelError, "'points' is .*; expected a list of 1 to 1000"),
    ('points: [{slw: 1}]', ModelError, "point 0: 'slw' is not known; did you mean 'slew'"),
    ('points: [{slew: fast}]', ModelError, "point 0: 'slew' is .*; expected 1 finite numbers"),
    ('points: [{slew: .nan}]', ModelError, 'expected 1 finite numbers'),
    ('{link: hand, poses: [{position: [1, 0, 0]}]}', UnknownNameError, "link 'hand': no link of 'hiab_xs031'"),
    ('{link: tcp, poses: [{position: [1, 0]}]}', ModelError, "pose 0: 'position' is .*; expected 3 finite numbers"),
    ('{link: tcp, poses: [{position: [2.6, 0.6, 0.9]}, {position: [2.6, 0.8, 0.9], via: [2.6, 0.7, 0.9]}]}', ModelError,
     r"pose 1: 'via' \[2.6, 0.7, 0.9\] is on one line with the position before and this one"),
    ('{link: tcp, poses: [{position: [2.6, 0.6, 0.9], via: [2.6, .inf, 1]}]}', ModelError,
     "'via' is .*; expected 3 finite numbers"),
    ('{link: tcp, straight: 1, poses: [{position: [1, 0, 0]}]}', ModelError, "'straight' is 1; expected true or false"),
    ('{link: tcp, poses: [{position: [2, 0, 1], orientation: [0, 0, 0, 2]}]}', ModelError, 'has length 2; expected 1'),
])
def test_bad_files_are_refused_with_file_and_entry(tmp_path, text, error, says):
    with pytest.raises(error, match=says):
        read(tmp_path, text)
