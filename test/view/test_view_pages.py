"""Pages of machines and motions as text: complete, small, and of any URDF."""

import base64
import gzip
import json
import re

import numpy as np
import pytest
from support.machines import URDF

from psdyn_ros.api.load import load
from psdyn_ros.view import machine_page
from psdyn_ros.view.motion import MAX_FRAMES, frames, simulated_motion
from psdyn_ros.view.scene import scene

MAX_BYTES = 3_000_000


def parts(page):
    """Return (scene, {name: array}) of a page."""
    shown = json.loads(re.search(r'id="scene">(.*?)</script>', page, re.DOTALL)[1])
    data = gzip.decompress(base64.b64decode(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]))
    found, place = {}, 0
    for name, kind, rows, columns in shown['arrays']:
        values = np.frombuffer(data, '<u4' if kind == 'uint' else '<f4', rows * columns, place)
        found[name] = values.reshape(columns, rows).T
        place += 4 * rows * columns
    assert place == len(data)
    return shown, found


def text_of(name='hiab_xs031'):
    return (URDF / f'{name}.urdf').read_text()


def test_page_of_a_minute_is_small_and_holds_the_motion(crane):
    time = np.arange(0.0, 60.0, 0.01)
    x = crane.initial_position + 0.05 * np.sin(time)[:, None] + 1e-3 * np.random.default_rng(0).random((len(time), 4))
    motion = simulated_motion(crane, time, x, np.tile(crane.gravity_forces(x[0]), (len(time), 1)))
    page = machine_page(crane, motion)
    assert len(page.encode()) < MAX_BYTES
    _, arrays = parts(page)
    rows = frames(time)
    assert len(rows) == pytest.approx(3000, abs=2)
    np.testing.assert_allclose(arrays['time'][:, 0], time[rows], atol=1e-5)
    np.testing.assert_allclose(arrays['joints'][-1], crane.joint_state(x[-1])[1], atol=1e-6)


def test_page_asks_the_network_for_nothing(crane):
    page = machine_page(crane)
    assert re.findall(r'<[a-z]+[^>]*?\s(?:src|href)\s*=\s*"([^"]*)"', page) == ['data:,']
    assert '@import' not in page and 'url(' not in page.split('<script>')[0]


def test_names_and_sentences_cannot_leave_their_place_in_the_page():
    text = text_of('hiab_xs031').replace('name="hiab_xs031"', 'name="&lt;/script&gt;&lt;b&gt;@@DATA@@"')
    m = load(text)
    page = machine_page(m, messages=['</script><img src=x onerror=alert(1)>'])
    plain = machine_page(load(text_of('hiab_xs031')))
    assert page.count('</script>') == plain.count('</script>') and '<img' not in page and '<b>@@' not in page
    shown, _ = parts(page)
    assert shown['name'] == '</script><b>@@DATA@@' and shown['messages'][-1].startswith('</script><img')


@pytest.mark.parametrize('count', [1, 2, 7])
def test_short_motions_keep_every_frame(count):
    assert frames(np.linspace(0.0, 0.02 * (count - 1), count)).tolist() == list(range(count))


def test_long_motions_have_fewer_frames_and_both_ends():
    time = np.linspace(0.0, 3600.0, 200_001)
    rows = frames(time)
    assert len(rows) <= MAX_FRAMES and rows[0] == 0 and rows[-1] == 200_000
    assert np.diff(time[rows]).max() < 0.26


def test_urdf_without_visuals_is_drawn_as_bars_and_says_so():
    m = load(re.sub(r'<visual>.*?</visual>', '', text_of(), flags=re.DOTALL))
    shown, _ = scene(m)
    assert any('declares no visual shapes' in text for text in shown['messages'])
    assert {shape['link'] for shape in shown['shapes']} == set(range(len(shown['links'])))
    # the bar of a boom reaches from its origin to its pins
    boom = shown['links'].index('lift_boom_link')
    ends = [np.linalg.norm(closure.child_origin.position) for closure in m.machine.description.closures.values()
            if closure.child == 'lift_boom_link']
    lengths = [shape['length'] for shape in shown['shapes'] if shape['link'] == boom and 'length' in shape]
    assert all(np.isclose(lengths, end).any() for end in ends)


def test_missing_mesh_is_named_and_its_link_drawn_as_a_bar():
    text = text_of().replace('<box size="0.9 1.3 0.14"/>', '<mesh filename="package://nobody/base.stl"/>', 1)
    text = re.sub(r'<visual>(?:(?!</visual>).)*length="0.12".*?</visual>', '', text, count=1, flags=re.DOTALL)
    shown, _ = scene(load(text))
    assert "1 meshes are not shown: 'package://nobody/base.stl' was not found" in shown['messages']
    assert any(shape['link'] == 0 for shape in shown['shapes'])


def test_visual_that_cannot_be_read_is_named():
    shown, _ = scene(load(text_of().replace('<box size="0.9 1.3 0.14"/>', '<box size="0.9 big 0.14"/>', 1)))
    assert any("a visual of link 'base_link' cannot be read" in text for text in shown['messages'])


TETRAHEDRON = '\n'.join(['solid t', *(
    'facet normal 0 0 0\nouter loop\n' + '\n'.join(f'vertex {" ".join(map(str, p))}' for p in face)
    + '\nendloop\nendfacet' for face in (((0, 0, 0), (0, 1, 0), (1, 0, 0)), ((0, 0, 0), (1, 0, 0), (0, 0, 1)),
                                         ((0, 0, 0), (0, 0, 1), (0, 1, 0)), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))),
    'endsolid t'])


@pytest.fixture
def with_mesh(tmp_path):
    """Write the crane with a mesh in place of its base, and return its path."""
    pytest.importorskip('trimesh')
    (tmp_path / 'robot' / 'meshes').mkdir(parents=True)
    (tmp_path / 'robot' / 'meshes' / 'base.stl').write_text(TETRAHEDRON)
    path = tmp_path / 'robot' / 'crane.urdf'
    path.write_text(text_of().replace('<box size="0.9 1.3 0.14"/>',
                                      '<mesh filename="package://robot/meshes/base.stl" scale="2 2 2"/>', 1))
    return path


def test_mesh_of_a_package_beside_the_urdf_is_in_the_page(with_mesh):
    shown, arrays = parts(machine_page(load(with_mesh)))
    assert shown['messages'] == []
    assert arrays['vertices 0'].max() == 2.0 and len(arrays['triangles 0']) == 4


def test_damaged_mesh_is_named(with_mesh):
    (with_mesh.parent / 'meshes' / 'base.stl').write_bytes(b'solid nothing')
    shown, _ = scene(load(with_mesh))
    assert "'base.stl'" in shown['messages'][0]


def test_large_mesh_is_thinned_and_keeps_its_size():
    from psdyn_ros.view.meshes import thinned
    n = 200
    u, v = np.meshgrid(np.linspace(0.0, 1.0, n), np.linspace(0.0, 2.0, n))
    vertices = np.column_stack((u.ravel(), v.ravel(), np.sin(3.0 * u.ravel())))
    k = np.arange(n * n).reshape(n, n)
    triangles = np.vstack([np.column_stack((k[:-1, :-1].ravel(), k[1:, :-1].ravel(), k[:-1, 1:].ravel()))])
    fewer, left = thinned(vertices, triangles, 2000)
    assert 500 < len(left) <= 2000 and left.max() < len(fewer)
    np.testing.assert_allclose(np.ptp(fewer, axis=0), np.ptp(vertices, axis=0), atol=0.1)


def test_manipulator_shows_itself_at_a_position(crane, tmp_path, monkeypatch):
    from psdyn_ros.view import page

    x = crane.initial_position + 0.01
    assert crane.show(x, tmp_path / 'a.html') == str(tmp_path / 'a.html')
    shown, _ = parts((tmp_path / 'a.html').read_text())
    np.testing.assert_allclose(shown['position'], crane.joint_state(x)[1])
    asked = []
    monkeypatch.setattr(page.webbrowser, 'open', asked.append)
    monkeypatch.setattr(page.tempfile, 'tempdir', str(tmp_path))
    assert asked == [] and crane.show().endswith('.html') and asked[0].startswith('file://')
