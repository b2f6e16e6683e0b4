"""The study of identification: what is judged, its page and its picture; recordings of a few seconds only."""

import numpy as np
import pytest

from psdyn_ros.tools.studies import identification_study as study
from psdyn_ros.tools.studies.identification_page import draw, page
from psdyn_ros.tools.studies.identification_runs import MASS, Sensors, crane_blocks, friction_truth, measured, record
from psdyn_ros.tools.studies.identification_study import CONDITIONS, DRAWS, MOTIONS, Outcome, OverTopics, judged
from psdyn_ros.tools.studies.tracking_runs import CYLINDERS, oil
from psdyn_ros.validation.bags.recording import BagError
from psdyn_ros.validation.identification.identified import SPEEDS


def outcomes(mass, friction, stated=1.0, count=20):
    """So many identifications off by these, relative, either way; stated: times that are the standard errors."""
    found = []
    for k in range(count):
        way = 1.0 if k % 2 else -1.0
        truth = np.array([friction_truth(name, SPEEDS) for name in CYLINDERS])
        found.append(Outcome((way * mass * MASS, stated * mass * MASS), np.array([np.full(3, way * 1e-3),
                                                                                  np.full(3, stated * 1e-3)]),
                             np.array([way * friction * truth, stated * friction * truth]), True))
    return found


def rows_of(**changes):
    return judged({one.name: outcomes(**{'mass': 5e-4, 'friction': 5e-3, **changes}) for one in CONDITIONS})


def test_errors_are_held_against_the_bounds_and_standard_errors_against_the_truth():
    rows = rows_of()
    assert len(rows) == 5 * len(CONDITIONS) and all(row.met and row.covered == 1.0 for row in rows)
    assert rows[0].worst == pytest.approx(5e-4) and rows[0].stated == pytest.approx(5e-4)
    missed = [(row.condition, row.what) for row in rows_of(mass=2e-3) if not row.met]
    assert missed == [('noiseless', 'mass')]
    missed = {row.condition for row in rows_of(friction=5e-2) if not row.met}
    assert missed == {'noiseless', 'plain: 0.1 mm, 0.5 bar'}
    # within the bounds, but beyond twice what is stated
    assert not any(row.met for row in rows_of(stated=0.4))


def test_the_page_says_what_was_found_and_the_picture_is_drawn(tmp_path):
    results = {one.name: outcomes(5e-4, 5e-3, count=4) for one in CONDITIONS}
    recording = OverTopics('plain', 60.0, MASS, (1.0, 2.0), np.full((2, 3, 3), 41.0), np.full((3, 3), 4100.0))
    text = page(judged(results), len(MOTIONS), DRAWS, 'images/x.png', [recording])
    assert '| noiseless | mass | 0.05 % | 0.05 % | 0.05 % | 100% | 0.1 % | pass |' in text
    assert '| plain | 60 s | 200 kg | 0.5 % | 1 % | 1 % | 1 % |' in text and '](images/x.png)' in text
    draw(tmp_path / 'x.png', results, CONDITIONS)
    assert (tmp_path / 'x.png').read_bytes().startswith(b'\x89PNG')


def test_sensors_are_as_wrong_as_they_are_said_to_be():
    recording = record(seed=1, duration=1.0)
    x, pressures, efforts = recording
    exact, off, gained = (measured(recording, 3, Sensors(noise=0.0, **what)) for what in (
        {}, {'offset': 5e4}, {'gain': 5e-3}))
    assert exact.x is x and (exact.pressures == pressures).all() and exact.efforts is efforts
    assert np.abs(off.pressures - pressures) == pytest.approx(5e4)
    assert np.abs(gained.pressures / pressures - 1.0) == pytest.approx(5e-3)
    noisy = measured(recording, 3, Sensors()).pressures - pressures
    assert noisy.std() == pytest.approx(5e4, rel=0.1) and abs(noisy.mean()) < 5e3
    block = next(crane_blocks(recording))
    lift = oil().cylinders['lift_cylinder']
    assert block.effort[:, 1] == pytest.approx(pressures[:, 0] @ [lift.area_a, -lift.area_b])


def test_a_folder_without_a_healthy_recording_is_named(tmp_path):
    (tmp_path / 'cases.yaml').write_text('cases: {delay: {sensors: plain}}')
    with pytest.raises(BagError, match="no case 'healthy'; there are: delay"):
        study.over_topics(tmp_path)
