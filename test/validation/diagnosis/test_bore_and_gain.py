"""A wrong bore, and a gain of one pressure sensor, in numbers that somebody can look up."""

import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import thorough
from support.bags.diagnosis_cases import diagnosed, port_areas, recorded, with_cylinder
from support.bags.recorded_motion import oil


@pytest.mark.parametrize('plain', thorough([False, True], 1))
def test_a_wrong_bore_is_named_in_millimetres_and_is_no_fault_of_one_port(plain):
    cylinder, block = oil().cylinders['tilt_cylinder'], recorded(plain=plain)
    wrong = with_cylinder('tilt_cylinder', bore=1.05 * cylinder.bore)
    effort = np.column_stack((block.effort[:, 0], (block.pressures * port_areas(wrong)).sum(axis=2)))
    (first, *_), _ = diagnosed(replace(block, effort=effort), hydraulics=wrong)
    assert (first.kind, first.about) == ('bore', 'tilt_cylinder'), first.text
    assert 'area of port' not in first.text
    found, believed_bore = re.search(r'of ([0-9.]+) .*mm in place of (\S+) mm', first.text).groups()
    assert float(believed_bore) == pytest.approx(1050.0 * cylinder.bore, rel=1e-3)
    assert float(found) == pytest.approx(1e3 * cylinder.bore, rel=2e-3)


def test_a_gain_of_one_port_is_said_as_a_gain_and_as_an_area():
    block = recorded(plain=False)
    pressures = block.pressures.copy()
    pressures[:, 1, 1] *= 1.1
    effort = np.column_stack((block.effort[:, 0], (pressures * port_areas(oil())).sum(axis=2)))
    (first, *_), _ = diagnosed(replace(block, effort=effort, pressures=pressures))
    assert (first.kind, first.about) == ('area', 'tilt_cylinder')
    assert first.estimate == pytest.approx(-0.1 / 1.1, rel=1e-3)
    assert re.search(r'port B .* 9\.091\S* .*% smaller .* sensor that is 10\.00\S* .*% too large',
                     first.text), first.text
