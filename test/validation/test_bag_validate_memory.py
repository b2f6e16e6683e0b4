"""Memory of the validation of long bags: of a process of its own, with report and bag of predictions."""

import json
import sys

import pytest

from bench.validation import GIB, MACHINE, run, write_array_bag, write_hole_bag, write_image_bag

MOST = 400.0                # MB
GROWTH = 40.0               # MB by which the longer one may need more: its figures have more in them


@pytest.mark.long
def test_memory_grows_neither_with_the_bag_nor_with_what_else_is_in_it(tmp_path):
    """A short bag with an attachment of 10 GiB, which is a hole in the file, and a longer one with images."""
    hole = write_hole_bag(tmp_path / 'hole.mcap', 10.0, 10 * GIB)
    assert hole.stat().st_size > 10 * GIB
    used = {}
    images = write_image_bag(tmp_path / 'images', 40.0, GIB // 8)
    # the first run may find kernels that are not compiled yet, and the compiler takes memory of its own
    for name, bag in (('first', hole), ('short', hole), ('long', images)):
        output = tmp_path / name
        used[name] = memory_of(bag, output)
    assert used['short'] < MOST and used['long'] < min(MOST, used['short'] + GROWTH), used


@pytest.mark.long
def test_memory_of_ten_minutes(tmp_path):
    memory_of(write_array_bag(tmp_path / 'warm', 4.0), tmp_path / 'first')
    assert memory_of(write_array_bag(tmp_path / 'bag', 600.0), tmp_path / 'output') < MOST


def memory_of(bag, output):
    """MB at the peak of the validation of a bag that passes."""
    found = run([sys.executable, '-m', 'psdyn_ros.cli', 'validate', bag, '--urdf', MACHINE, '--output', output])
    assert found['exit_code'] == 0
    assert json.loads((output / 'validation.json').read_text())['verdict'] == 'PASS'
    return found['memory']
