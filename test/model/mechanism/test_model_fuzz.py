"""Whatever is done to a URDF, the reader answers with a machine that computes or with an error of its own."""

from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from support.harmed_text import harmed_text
from support.machines import chain, hiab
from support.one_loop import one_loop
from test_model_loops_file import LOOPS, OPEN

import psdyn_ros
from psdyn_ros import PsdynError

SOUND = [one_loop(losses=((1, 2),) * 4).xml, chain(3, 'RLP', friction=True).xml, hiab(lift_only=True).xml]
NUMBERS = ['', '0', '-1', '1e-3', '1e308', '-1e-320', 'nan', 'inf', 'x', '1 0 0', '0 0 0', '0 0 1', '1e200 1 1', '1 2']
WORDS = ['', 'revolute', 'continuous', 'prismatic', 'fixed', 'spherical', 'floating', 'base_link', 'position', '\u20ac']


def elements_of(root):
    return list(root.iter())


def mutate(root, draw):
    """Do one random harm to a tree of elements."""
    parents = [element for element in elements_of(root) if len(element)]
    parent = draw(st.sampled_from(parents))
    child = draw(st.sampled_from(list(parent)))
    kind = draw(st.sampled_from(['delete', 'duplicate', 'move', 'rename', 'unset', 'set', 'exchange', 'text']))
    with_attributes = [element for element in elements_of(root) if element.attrib]
    victim = draw(st.sampled_from(with_attributes))
    key = draw(st.sampled_from(sorted(victim.attrib)))
    if kind == 'delete':
        parent.remove(child)
    elif kind == 'duplicate':
        parent.append(child)
    elif kind == 'move':
        other = draw(st.sampled_from(elements_of(root)))
        if other not in child.iter():
            parent.remove(child)
            other.append(child)
    elif kind == 'rename':
        child.tag = draw(st.sampled_from([element.tag for element in elements_of(root)]))
    elif kind == 'unset':
        del victim.attrib[key]
    elif kind == 'set':
        victim.set(key, draw(st.sampled_from(NUMBERS + WORDS)))
    elif kind == 'exchange':
        other = draw(st.sampled_from([element for element in with_attributes if key in element.attrib]))
        victim.attrib[key], other.attrib[key] = other.attrib[key], victim.attrib[key]
    elif kind == 'text':
        child.text = draw(st.sampled_from(NUMBERS + WORDS))


@st.composite
def harmed_elements(draw):
    root = ElementTree.fromstring(draw(st.sampled_from(SOUND)))
    for _ in range(draw(st.integers(1, 4))):
        mutate(root, draw)
    return ElementTree.tostring(root, encoding='unicode')


def load_and_compute(text, **options):
    """Load a machine and use it; return it, or the error of the package."""
    try:
        with np.errstate(all='ignore'):         # masses of 1e308 kg may overflow
            manipulator = psdyn_ros.load(text, **options)
            x, zero = manipulator.initial_position, np.zeros(manipulator.dof)
            f = manipulator.gravity_forces(x)
            manipulator.forward_dynamics(x, zero, f)
            manipulator.joint_state(x, zero, zero)
            for link in manipulator.links:
                manipulator.link_pose(x, link)
        return manipulator
    except PsdynError as error:
        assert str(error) and len(str(error)) < 2000
        return error


@settings(max_examples=examples(400))
@given(harmed_elements(), st.booleans())
def test_harmed_elements(text, allow_unphysical):
    load_and_compute(text, allow_unphysical=allow_unphysical)


@settings(max_examples=examples(200))
@given(harmed_text(SOUND))
def test_harmed_text(text):
    load_and_compute(text if text.lstrip().startswith('<') else '<' + text)


@settings(max_examples=examples(200))
@given(harmed_text([LOOPS]))
def test_harmed_loops_files(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / 'harmed.yaml'
    path.write_bytes(text.encode('utf-8', 'surrogatepass'))
    load_and_compute(OPEN, loops_file=path)


@given(st.one_of(st.text(), st.text(alphabet='<>/="robtlinkjea &;![]?-')))
def test_any_text(text):
    with pytest.raises(PsdynError):
        psdyn_ros.load('<' + text)


def test_these_machines_are_sound():
    for xml in SOUND:
        assert isinstance(load_and_compute(xml), psdyn_ros.Manipulator)
