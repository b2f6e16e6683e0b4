"""Delays between topics of a bag: found and taken off where they are certain, and never made up by a wrong model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.bags import bag_cases as cases
from support.bags.recorded_motion import MIDDLE, PERIOD, crane, oil, swinging

from psdyn_ros.model.errors import ModelError
from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing.mutations import BEGIN, TELEMETRY
from psdyn_ros.tools.studies import tracking_runs
from psdyn_ros.validation.bags.bulk_decoder import PRESSURE
from psdyn_ros.validation.bags.source import open_bag
from psdyn_ros.validation.diagnosis.topic_delays import TopicDelay, _Fit, _Piece, _Search, delay_of, topic_delays
from psdyn_ros.validation.diagnosis.whitening import Whitening
from psdyn_ros.validation.metrics import FAIL, PASS
from psdyn_ros.validation.metrics.prediction import Predictor
from psdyn_ros.validation.metrics.tolerances import read_settings
from psdyn_ros.validation.metrics.verdict import Verdict
from psdyn_ros.validation.signals.topics import find_topics
from psdyn_ros.validation.validate import validate

LATE = 0.008
SECONDS, STANDING = 40.0, 6.0           # s of a recording, and of it at rest before anything moves
EVERY = 2                               # periods from one message to the next
ATMOSPHERE = 101325.0
POSITION, RATE, PRESSURE_NOISE = 1e-4, 1e-3, 5e4        # of plain sensors: m, m/s, Pa


def moving(seconds=SECONDS, standing=STANDING):
    """(t, x, xd, forces) of a crane that stands and then swings with several frequencies, all axes on their own."""
    t = PERIOD * EVERY * np.arange(round(seconds / (PERIOD * EVERY)))
    since = np.maximum(t - standing, 0.0)
    x, xd, xdd = np.tile(MIDDLE, (len(t), 1)), np.zeros((len(t), 4)), np.zeros((len(t), 4))
    begin = np.clip(since, 0.0, 1.0)
    share, rate, bend = (begin ** 3 * (10.0 - 15.0 * begin + 6.0 * begin ** 2),
                         30.0 * begin ** 2 * (1.0 - begin) ** 2, 60.0 * begin * (1.0 - begin) * (1.0 - 2.0 * begin))
    for axis in range(4):
        for k, amplitude in enumerate((0.05, 0.02, 0.008)):
            w, phase = 2.0 * np.pi * (0.13 + 0.31 * k + 0.05 * axis), 0.7 * axis + k
            s, c = np.sin(w * since + phase) - np.sin(phase), w * np.cos(w * since + phase)
            x[:, axis] += amplitude * share * s
            xd[:, axis] += amplitude * (share * c + rate * s)
            xdd[:, axis] += amplitude * (2.0 * rate * c + bend * s
                                         - share * w * w * np.sin(w * since + phase))
    predictor = Predictor(tracking_runs.crane(), oil())
    bare = predictor.mechanism.inverse_dynamics(x, xd, xdd)
    return t, x, xd, bare + predictor.friction(x, xd, xdd, xd, bare)


def pressures_of(forces):
    """(N, cylinders, 2) gauge pressures that give forces (N, actuators), as a valve with a load-dependent side does."""
    columns = []
    for axis, one in enumerate(oil().cylinders.values(), 1):
        back = 4e6 + 50.0 * forces[:, axis]
        columns.append(np.column_stack(((forces[:, axis] + back * one.area_b) / one.area_a, back)))
    return np.stack(columns, axis=1)


@pytest.fixture(scope='module')
def recorded():
    t, x, xd, forces = moving()
    rng = np.random.default_rng(3)
    x = np.round((x + 2e-5 * rng.standard_normal(x.shape)) / POSITION) * POSITION
    xd = xd + RATE * rng.standard_normal(xd.shape)
    pressures = pressures_of(forces)
    return t, x, xd, forces[:, 0], pressures + PRESSURE_NOISE * rng.standard_normal(pressures.shape)


def write(path, recorded, late=LATE, epoch=0.0, ports=False, port_late=None):
    """A bag of plain sensors, whose pressures say that they are `late` s younger than they are."""
    t, x, xd, slew, pressures = recorded
    efforts = np.column_stack((slew, np.zeros((len(t), 3))))
    states = cases.state_messages(crane(), t, x, xd, efforts, names=crane().actuators)
    messages, kinds = [], {}
    for k, one in enumerate(t):
        ns = BEGIN + round((one + late) * SECOND)
        if ports:
            for row, name in enumerate(oil().cylinders):
                for column, port in enumerate('ab'):
                    later = round((port_late or {}).get((name, port), 0.0) * SECOND)
                    kinds[f'/{name}/pressure_{port}'] = PRESSURE
                    messages.append((f'/{name}/pressure_{port}', ns + later + 200_000, cases.fluid_pressure(
                        ns + later, ATMOSPHERE + pressures[k, row, column])))
        else:
            rows = np.column_stack((pressures[k], np.full(3, ns / SECOND + epoch)))
            messages.append((TELEMETRY, ns + 200_000, cases.labelled(rows, tuple(oil().cylinders), (
                'pressure_a', 'pressure_b', 'stamp'))))
    return cases.write(path, states, messages, kinds=kinds)


@pytest.fixture(scope='module')
def bags(recorded, tmp_path_factory):
    folder = tmp_path_factory.mktemp('late')
    return {'late': write(folder / 'late.mcap', recorded), 'healthy': write(folder / 'healthy.mcap', recorded, 0.0)}


def delays_of(path, machine=None, hydraulics=None, known=None):
    machine, hydraulics = machine or crane(), hydraulics or oil()
    with open_bag(path) as source:
        channels = find_topics(source, machine)
        smooth = read_settings(None, machine.actuators).filter.make(channels.period)
        return topic_delays(source, channels, Predictor(machine, hydraulics, smooth), known)


def rubbing(factor):
    """The oil with other friction of the seals."""
    return replace(oil(), cylinders={
        name: replace(one, friction=replace(one.friction, coulomb=factor * one.friction.coulomb,
                                            viscous=factor * one.friction.viscous))
        for name, one in oil().cylinders.items()})


def wider(share):
    """The oil with areas A that are larger by a share, at the same areas B."""
    def bores(one):
        bore = np.sqrt(1.0 + share) * one.bore
        return {'bore': bore, 'rod': np.sqrt(bore ** 2 - one.bore ** 2 + one.rod ** 2)}
    return replace(oil(), cylinders={name: replace(one, **bores(one)) for name, one in oil().cylinders.items()})


def test_pressures_of_plain_sensors_that_are_8_ms_late_are_found_within_1_ms(bags):
    found = delays_of(bags['late'])
    assert found.keys() == {TELEMETRY}
    delay = found[TELEMETRY]
    assert delay.seconds == pytest.approx(LATE, abs=1e-3) and delay.taken == delay.seconds and delay.certain
    assert delay.low < LATE < delay.high and delay.high - delay.low < 4e-3
    assert 'taken off' in delay.text and delay.correlation > 0.99


def test_exact_sensors_show_no_delay_beyond_20_us(tmp_path):
    """Nothing in the way from a bag to a delay shifts one signal against another."""
    t, x, xd, forces = moving(20.0, 1.0)
    path = write(tmp_path / 'exact.mcap', (t, x, xd, forces[:, 0], pressures_of(forces)), 1e-3)
    assert delays_of(path)[TELEMETRY].seconds == pytest.approx(1e-3, abs=2e-5)


@pytest.mark.long
@pytest.mark.parametrize('machine, hydraulics', [
    pytest.param(crane, oil, id='right', marks=pytest.mark.long),
    pytest.param(lambda: tracking_runs.crane(1.0, 120.0), oil, id='payload'),
    pytest.param(lambda: tracking_runs.crane(1.25), oil, id='inertia', marks=pytest.mark.long),
    pytest.param(crane, lambda: rubbing(2.0), id='friction', marks=pytest.mark.long),
    pytest.param(crane, lambda: rubbing(0.01), id='no friction', marks=pytest.mark.long)])
def test_a_wrong_model_makes_no_delay_up_and_hides_none(bags, machine, hydraulics):
    healthy = delays_of(bags['healthy'], machine(), hydraulics())[TELEMETRY]
    assert healthy.taken == 0.0 and abs(healthy.seconds) < 1e-3 and 'may as well be none' in healthy.reason
    late = delays_of(bags['late'], machine(), hydraulics())[TELEMETRY]
    assert late.taken == pytest.approx(LATE, abs=1e-3)


@pytest.mark.parametrize('late', [0.0, LATE])
def test_areas_that_are_off_make_no_delay_up_and_hide_none(recorded, tmp_path, late):
    t, x, xd, slew, pressures = recorded
    # pressures of both ports change together, and the force does not
    both = 3e6 * (np.sin(2.3 * t) + np.sin(0.9 * t + 1.0))[:, None]
    more = np.stack([np.hstack((both * one.area_b / one.area_a, both)) for one in oil().cylinders.values()], axis=1)
    found = delays_of(write(tmp_path / 'a.mcap', (t, x, xd, slew, pressures + more), late, ports=True), crane(),
                      wider(0.03))
    for delay in found.values():
        assert delay.low < late < delay.high and delay.high - delay.low < 2e-3, found


def test_what_the_settings_say_is_not_looked_for(bags):
    assert delays_of(bags['late'], known={TELEMETRY: LATE}) == {}


@pytest.mark.long
def test_another_epoch_of_the_stamps_changes_nothing(recorded, tmp_path):
    """Simulated time on one topic, wall time on the other: the times of receipt tell by how much it is late."""
    path = write(tmp_path / 'a.mcap', recorded, epoch=-1.5e9)
    with open_bag(path) as source:
        channels = find_topics(source, crane())
    assert channels.clocks.keys() == {TELEMETRY} and not channels.by_stamp
    assert delays_of(path)[TELEMETRY].taken == pytest.approx(LATE, abs=1e-3)


@pytest.mark.long
def test_of_ports_on_topics_of_their_own_each_has_its_own_delay(recorded, tmp_path):
    path = write(tmp_path / 'a.mcap', recorded, late=0.0, ports=True,
                 port_late={('lift_cylinder', 'a'): 0.12, ('telescope', 'b'): 0.02})
    found = delays_of(path)
    assert len(found) == 6
    assert found['/lift_cylinder/pressure_a'].taken == pytest.approx(0.12, abs=2e-3)
    others = [delay for topic, delay in found.items() if topic not in ('/lift_cylinder/pressure_a',
                                                                       '/telescope/pressure_b')]
    assert all(delay.taken == 0.0 for delay in others)


T = 0.02 * np.arange(3000)


def waves(rng):
    """An effort that a motion needs."""
    return CubicSpline(T, sum(np.sin(w * T + rng.uniform(0.0, 6.0)) for w in (1.0, 1.7, 2.9)))


def search(needed, signals):
    """A `_Search` for the delays of topics {name: function of (s, order)} of an effort that a function of s needs."""
    inner = T[50:-50]
    return _Search([_Fit([_Piece(inner, needed(inner), np.ones((len(inner), 1)), signals)])], list(signals), 1e-4)


def searched(size, truth, seed=0):
    """A `_Search` for the delays of two topics of one effort: 'a' that is on time, and 'b' of a size that is late."""
    rng = np.random.default_rng(seed)
    first, second = waves(rng), waves(rng)
    # as smooth as what a filter leaves
    noise = CubicSpline(T[::10], 0.01 * rng.standard_normal(300))
    return search(lambda t: first(t) + size * second(t), {
        'a': first, 'b': lambda at, order: size * second(at - truth, order) + noise(at, order)})


@pytest.mark.parametrize('size, truth', [(0.01, 0.0), (1.0, -0.04)])
def test_topic_that_says_little_has_the_delay_of_the_others_and_one_that_says_much_its_own(size, truth):
    at, widths, *_ = searched(size, truth)._grouped({'a': 0.0, 'b': -0.04})
    assert at['b'] == pytest.approx(truth, abs=2e-3) and abs(at['a']) < 2e-3
    assert (at['a'] == at['b']) == (truth == 0.0) and widths['b'] < 3e-3


@pytest.mark.parametrize('drift', [0.0, 2e-4, -2e-4])
def test_clock_that_runs_200_us_per_second_apart_is_named(drift):
    rng = np.random.default_rng(1)
    needed = waves(rng)
    noise = CubicSpline(T[::10], 0.01 * rng.standard_normal(300))
    late = CubicSpline(T, needed(T - LATE - drift * (T - T.mean())))
    delay = search(needed, {'a': lambda at, order: late(at, order) + noise(at, order)}).delays(0.002)['a']
    assert delay.drift == pytest.approx(drift, abs=2.0 * delay.drift_width) and delay.drift_width < 5e-5
    assert delay.drifts == (drift != 0.0) == ('clocks' in delay.text)
    assert delay.low < LATE < delay.high


@pytest.mark.parametrize('late', [8e-3, -7e-3])
def test_delay_of_a_late_topic_is_as_exact_as_that_of_one_on_time(late):
    rng, found = np.random.default_rng(3), []
    needed = waves(rng)
    # as noise of accelerations, that is alike for less long than what the delay leaves
    noise = CubicSpline(T[::5], np.gradient(np.gradient(rng.standard_normal(600))))
    for shift in (0.0, late):
        signals = {'a': lambda at, order, shift=shift: needed(at - shift, order) + 0.1 * noise(at - shift, order)}
        found.append(search(needed, signals).delays(0.002)['a'])
    assert found[1].seconds - late == pytest.approx(found[0].seconds, abs=1e-5)
    assert found[1].error == pytest.approx(found[0].error, rel=0.02) and abs(found[0].seconds) < 3.0 * found[0].error


def test_pass_with_clocks_that_run_apart_names_them_once():
    delays = {topic: TopicDelay(4e-3, 3e-3, 5e-3, 0.99, 30, True, 4e-3, '', drift, 3e-5)
              for topic, drift in (('/a', 2e-4), ('/b', 2e-4), ('/c', 4e-5))}
    passed = Verdict(PASS, (), (), ()).with_cause((), delays)
    assert passed.but == ('/a and /b: the delay changes by 200 +- 30 us/s: the clocks of the efforts and of the states '
                          'run apart',)
    assert 'PASS, but /a and /b' in passed.text and not Verdict(FAIL, (), ('reason',), ()).with_cause((), delays).but


def test_delay_that_another_one_explains_as_well_is_not_known():
    wave = CubicSpline(T, np.sin(2.0 * np.pi * T / 0.2))
    delay = search(lambda t: wave(t) + 1e-3 * np.sin(t), {'a': wave}).delays(0.002)['a']
    assert np.isnan([delay.seconds, delay.low, delay.high]).all() and not delay.certain and delay.taken == 0.0
    assert delay.text == 'not known: another delay would explain as much'


@pytest.mark.parametrize('seed', range(4))
def test_delay_that_is_not_certain_is_not_stated(seed):
    """As of bags with a force for a while, whose intervals are too narrow."""
    wave = CubicSpline(T, np.sin(2.0 * np.pi * T / 3.0))
    wrong = CubicSpline(T[::150], 0.2 * np.random.default_rng(seed).standard_normal(len(T[::150])))
    delay = search(lambda t: wave(t) + wrong(t), {'a': wave}).delays(0.002)['a']
    assert delay.text == 'not known: it is not certain to 3 ms' and delay.taken == 0.0
    assert np.isnan([delay.seconds, delay.low, delay.high]).all()


@pytest.mark.long
def test_efforts_on_a_topic_of_their_own_are_aligned_too(recorded, tmp_path):
    """Without hydraulics: efforts of the actuators as a driver gives them, late, beside states without any."""
    t, x, xd, *_ = recorded
    _, exact, rate, _ = moving()
    acceleration = np.gradient(rate, t, axis=0)
    efforts = crane().inverse_dynamics(exact, rate, acceleration)
    states = cases.state_messages(crane(), t, x, xd, names=crane().actuators)
    late = cases.state_messages(crane(), t + LATE, np.full_like(x, np.nan), efforts=efforts, topic='/drives',
                                names=crane().actuators)
    path = cases.write(tmp_path / 'a.mcap', states, late)
    with open_bag(path) as source:
        channels = find_topics(source, crane())
        smooth = read_settings(None, crane().actuators).filter.make(channels.period)
        found = topic_delays(source, channels, Predictor(crane(), None, smooth))
    assert found.keys() == {'/drives'} and found['/drives'].taken == pytest.approx(LATE, abs=1e-3)
    assert all(delay_of(found, channels, name) is found['/drives'] for name in crane().actuators)


def test_a_machine_that_hardly_moves_tells_no_delay(recorded, tmp_path):
    still = tuple(values[:round(STANDING / (PERIOD * EVERY))] for values in recorded)
    delay = delays_of(write(tmp_path / 'still.mcap', still))[TELEMETRY]
    assert delay.taken == 0.0 and delay.text.startswith('not known: nothing moves')
    short = tuple(values[:round((STANDING + 7.0) / (PERIOD * EVERY))] for values in recorded)
    delay = delays_of(write(tmp_path / 'short.mcap', short))[TELEMETRY]
    assert delay.taken == 0.0 and 'stretches' in delay.reason and not delay.certain


@pytest.mark.long
def test_delays_are_taken_off_reported_and_judged(bags):
    found = validate(bags['late'], crane(), hydraulics=oil())
    checks = {check.about: check for check in found.verdict.checks if check.figure == 'delay'}
    assert checks.keys() >= set(oil().cylinders) and found.verdict.verdict == FAIL
    for name in oil().cylinders:
        assert checks[name].value == pytest.approx(LATE, abs=1e-3) and not checks[name].passed
    plain = validate(bags['late'], crane(), hydraulics=oil(), align=False)
    assert plain.delays == {} and found.delays[TELEMETRY].taken > 0.0
    for axis in (1, 2, 3):
        assert found.metrics.metrics(0, axis).rmse < plain.metrics.metrics(0, axis).rmse
    text = 'actuator: {delay: 0.02}\nalign: false\n'
    assert validate(bags['late'], crane(), hydraulics=oil(), config=text).delays == {}
    assert validate(bags['healthy'], crane(), hydraulics=oil()).verdict.verdict == PASS


def test_align_is_true_or_false():
    assert read_settings('align: true\n', crane().actuators).align
    with pytest.raises(ModelError, match='expected true or false'):
        read_settings('align: perhaps\n', crane().actuators)


def test_the_motion_of_these_tests_is_one():
    t, x, xd, _ = moving()
    np.testing.assert_allclose(np.gradient(x, t, axis=0)[1:-1], xd[1:-1], atol=2e-4)
    assert swinging(1.0)[0][1] == PERIOD and (np.abs(xd).max(axis=0) > 0.05).all()


def test_a_single_row_is_white():
    one = np.array([[2.0, 3.0]])
    assert Whitening(np.zeros(1), np.zeros(1, dtype=int), np.ones(1))(one) == pytest.approx(one, rel=0.01)
