"""A figure of one's own, a file and its place in the list, is in settings, verdict, tables, comparison, live."""

import json

import pytest
from support.bags.recorded_motion import write_demonstration
from support.edited_copy import edited_copy, run

# what a developer adds: the file, and its place in FIGURES
OWN = '''
import numpy as np

from ...model.parameters.parameter_blocks import number
from .bootstrap import mean
from .figure import Figure, estimate


class MeanError(Figure):
    """Mean size of the error, N or N m, with sums of its own."""

    name, compared, column, change, statistic = 'mean_error', 'mean_error', 'mean error', 1.0, staticmethod(mean)
    tolerance = number('N or N m, mean size of the error', 1e6, low=0.0, high=1e9)

    def __init__(self, metrics):
        super().__init__(metrics)
        self.totals = metrics.bins.column((len(metrics.actuators), 2))

    def add(self, prediction, bins):
        e = np.abs(prediction.effort - prediction.effort_id)[prediction.core]
        known = np.isfinite(e)
        np.add.at(self.totals.rows, bins, np.stack((known, np.where(known, e, 0.0)), axis=2))

    def value(self, about, drawn):
        return estimate(mean(self.sums(about).sum(axis=0)))

    def sums(self, about):
        return self.totals.rows[:, about]
'''
LISTED = [('from .figure import R2', 'from .mean_error import MeanError\nfrom .figure import R2'),
          ('Frozen, EnergyBalance)', 'Frozen, EnergyBalance, MeanError)')]
COMMANDS = '''
import sys

from psdyn_ros.cli import main

before, after, config, folder = sys.argv[1:]
given = ['--urdf', 'hiab_xs031', '--config', config]
codes = main(['validate', after, *given, '--output', folder + '/one']), main(['compare', before, after, *given])
print('exit codes', *codes)
'''
LIVE = '''
import sys

from support.bags.recorded_motion import crane, exact_block, oil

from psdyn_ros.validation.metrics.prediction import Predictor
from psdyn_ros.validation.metrics.rolling import RunningMetrics
from psdyn_ros.validation.metrics.tolerances import read_settings

predictor = Predictor(crane(), oil())
running = RunningMetrics(predictor, read_settings(sys.argv[1], crane().actuators))
running.add(predictor.predict(exact_block(1.0)))
for one in running.figures():
    print(one.name, [check.passed for check in one.checks if check.figure == 'mean_error'])
'''
CONFIG = 'actuators:\n  lift_cylinder: {mean_error: 1.0}\n'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = edited_copy(tmp_path_factory.mktemp('figure'), {
        'validation/metrics/mean_error.py': OWN, 'validation/metrics/metrics.py': LISTED})
    (folder / 'tolerances.yaml').write_text(CONFIG)
    assert len(list((folder / 'psdyn_ros' / 'validation' / 'metrics').glob('*.py'))) <= 16
    return folder


@pytest.mark.long
def test_a_figure_of_ones_own_is_in_settings_verdict_tables_report_and_comparison(folder):
    before, after = (write_demonstration(folder / name, plain=True, payload=payload)
                     for name, payload in (('before', 0.0), ('after', 30.0)))
    out = run(folder, COMMANDS, before, after, folder / 'tolerances.yaml', folder)
    assert 'exit codes 1 1' in out
    header = next(line for line in out.splitlines() if line.startswith('actuator'))
    assert 'mean error' in header and 'lift_cylinder: mean_error' in out
    found = json.loads((folder / 'one' / 'validation.json').read_text())
    checks = {one['about']: one for one in found['checks'] if one['figure'] == 'mean_error'}
    assert {name: (one['tolerance'], one['passed']) for name, one in checks.items()} == {
        'slew': (1e6, True), 'lift_cylinder': (1.0, False), 'tilt_cylinder': (1e6, True), 'telescope': (1e6, True)}
    lift = found['actuators']['lift_cylinder']['effort']['all']
    # what friction may explain near standstill is in the table, and not judged
    assert checks['lift_cylinder']['value'] == pytest.approx(lift['mae'], rel=1e-2)
    page = (folder / 'one' / 'report.html').read_text()
    assert '<th>mean error</th>' in page and 'lift_cylinder: mean_error' in page
    changes = [line.split() for line in out.splitlines() if line.split()[:2] == ['lift_cylinder', 'mean_error']]
    assert len(changes) == 1 and changes[0][-1] == 'WORSE'


def test_a_figure_of_ones_own_is_judged_live(folder):
    out = run(folder, LIVE, folder / 'tolerances.yaml', compiled=False)
    assert "lift_cylinder [True]" in out and out.count('[True]') == 4
