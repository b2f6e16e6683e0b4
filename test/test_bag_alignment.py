"""Delays between signals, and between topics of a bag."""

import bag_cases as cases
import numpy as np
import pytest

from psdyn_ros.api.load import load
from psdyn_ros.model.hydraulics import read_hydraulics
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.validation.alignment import DelayEstimator, estimate_delay, topic_delays
from psdyn_ros.validation.bag_mutations import BEGIN, TELEMETRY
from psdyn_ros.validation.bag_source import open_bag
from psdyn_ros.validation.bags import SECOND
from psdyn_ros.validation.blocks import blocks
from psdyn_ros.validation.channels import find_topics

PERIOD = 0.002


def signal(t):
    return sum(np.sin(2 * np.pi * f * t + p) / f for f, p in ((0.3, 0), (0.7, 1), (1.9, 2), (3.1, 3), (5.3, 4)))


@pytest.mark.parametrize('delay', [0.0, 0.008, 0.0083, -0.0131, 0.2007, 0.0005])
def test_a_delay_is_found_between_samples(rng, delay):
    t = np.arange(0.0, 20.0, PERIOD)
    assert estimate_delay(signal(t), 3.0 * signal(t - delay) + 7.0, PERIOD).seconds == pytest.approx(delay, abs=5e-6)
    noise = 0.002 * rng.standard_normal((2, len(t)))
    noisy = estimate_delay(signal(t) + noise[0], 3.0 * signal(t - delay) + noise[1], PERIOD)
    assert noisy.seconds == pytest.approx(delay, abs=2e-4) and noisy.correlation > 0.9


def test_pieces_give_the_delay_of_the_whole():
    t, estimator = np.arange(0.0, 60.0, PERIOD), DelayEstimator(PERIOD, 0.1)
    for piece in np.split(t, 6):
        estimator.add(signal(piece), signal(piece - 0.0121))
    estimator.add(np.full(1000, np.nan), np.zeros(1000))
    assert estimator.delay().seconds == pytest.approx(0.0121, abs=1e-5)


def test_of_signals_without_anything_in_common_no_delay_is_said(rng):
    a, b = rng.standard_normal((2, 5000))
    assert np.isnan(estimate_delay(a, b, PERIOD).seconds)
    assert np.isnan(estimate_delay(np.ones(5000), b, PERIOD).seconds)
    assert np.isnan(estimate_delay(a[:3], b[:3], PERIOD).seconds)


def test_pressures_that_are_late_are_found_out_by_the_model(tmp_path):
    """Efforts that the motion needs, made into pressures and recorded 8 ms late."""
    crane = load(find_machine('hiab_xs031'))
    hydraulics = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), crane.actuators)
    times = np.arange(4000) * PERIOD
    x = crane.initial_position + 0.02 * np.array([signal(times + k) for k in range(4)]).T
    xd, xdd = np.gradient(x, PERIOD, axis=0), np.gradient(np.gradient(x, PERIOD, axis=0), PERIOD, axis=0)
    force = crane.inverse_dynamics(x, xd, xdd)
    positions = np.array([crane.joint_state(row)[1] for row in x])
    names, messages = tuple(hydraulics.cylinders), []
    for k, t in enumerate(times):
        ns = BEGIN + round((t + 0.008) * SECOND)
        rows = [((force[k, crane.actuators.index(name)] + 5e6 * one.area_b) / one.area_a, 5e6, 0.0, ns / SECOND)
                for name, one in hydraulics.cylinders.items()]
        messages.append((TELEMETRY, ns + 200_000, cases.labelled(
            rows, names, ('pressure_a', 'pressure_b', 'flow_a', 'stamp'))))
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions), messages)
    with open_bag(path) as source:
        channels = find_topics(source, crane)
        delay = topic_delays(blocks(source, channels, crane, hydraulics), channels, crane, hydraulics)[TELEMETRY]
    assert delay.seconds == pytest.approx(0.008, abs=2e-4)
