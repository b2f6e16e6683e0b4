"""What `validate` says of mutated bags, and which of its PASSes are wrong.

A PASS of a whole recording (exit code 0) is wrong, unless

* nothing but what was recorded was used, and all of it, or
* no checksum of the bag covers what was altered, as in SQLite files, in MCAP files without chunks, and in messages that
  were spoilt before they were recorded, as many messages were used as there were, and no figure of the verdict is
  further from that of the honest bag than BLURRED of its tolerance.

A PASS of a part (exit code 3) tells a loss; it is wrong where it rests on messages that were never recorded although
checksums cover them.  Neither may be said of bags that nobody may read for whole, which a mutation knows by itself.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ...model.errors import PsdynError
from ...model.units import SECOND
from ...validation.bags.row_bag import joint_states, labelled_array
from ...validation.bags.source import open_bag
from ...validation.metrics import PASS
from ...validation.metrics.prediction import Predictor
from ...validation.validate import validate
from .mutations import BEGIN, MESSAGES, QUANTITIES, STATES, TELEMETRY

PERIOD = 10_000_000         # ns between messages of a topic
SWING, FREQUENCY = 0.25, (0.4, 0.9)     # of the range of a coordinate, at most 0.1 m or rad; Hz, lowest and highest
LOW_PRESSURE = 4e6                      # Pa in the chambers at the rods
BLURRED = 0.1
CONFIG = 'machine: {seconds: 1, motion: 0.5}\n\n'       # bags that were cut off are judged too
OUTCOMES = ('pass', 'fail', 'invalid', 'pass of a part')
REFUSED = 'refused'


def true_messages(manipulator, hydraulics):
    """[(topic, ns received, serialised message)] of a machine that moves and pushes as its model says."""
    t = PERIOD / SECOND * np.arange(MESSAGES)
    x, xd, xdd = _swinging(manipulator, t)
    predictor = Predictor(manipulator, hydraulics)
    bare = predictor.mechanism.inverse_dynamics(x, xd, xdd)
    efforts = bare + predictor.friction(x, xd, xdd, xd, bare)
    names = manipulator.joint_state(x[0], xd[0])[0]
    position, velocity = (np.array(rows) for rows in zip(*(manipulator.joint_state(*state)[1:3]
                                                           for state in zip(x, xd))))
    effort = np.zeros(position.shape)
    for axis, name in enumerate(manipulator.actuators):
        if name not in hydraulics.cylinders:
            effort[:, names.index(name)] = efforts[:, axis]
    ns = BEGIN + PERIOD * np.arange(MESSAGES)
    low = np.full(MESSAGES, LOW_PRESSURE)
    table = np.stack([np.column_stack(((efforts[:, manipulator.actuators.index(name)] + low * one.area_b) / one.area_a,
                                       low, ns / SECOND)) for name, one in hydraulics.cylinders.items()], axis=1)
    states = joint_states(names).rows(ns, (position, velocity, effort))
    telemetry = labelled_array(tuple(hydraulics.cylinders), QUANTITIES).rows(ns, (table.reshape(MESSAGES, -1),))
    return [message for k, now in enumerate(ns.tolist())
            for message in ((STATES, now + 100_000, states[k].tobytes()),
                            (TELEMETRY, now + 200_000, telemetry[k].tobytes()))]


def _swinging(manipulator, t):
    """(x, xd, xdd) (N, dof) of sines about the initial position."""
    middle, limits = manipulator.initial_position, manipulator.limits
    swing = np.minimum(SWING * np.minimum(middle - limits.lower, limits.upper - middle), 0.1)
    w = 2.0 * np.pi * np.linspace(*FREQUENCY, manipulator.dof)
    phase = t[:, None] * w
    return middle + swing * np.sin(phase), swing * w * np.cos(phase), -swing * w ** 2 * np.sin(phase)


@dataclass(frozen=True)
class Honest:
    """What is true of the honest bags.

    messages  {(topic, ns received, serialised message): how often}
    figures   {(about, figure): value} of their verdict
    """

    messages: Counter
    figures: dict


def honest(path, messages, machine):
    """Return the `Honest` of a bag of these messages; ValueError where that does not pass itself."""
    found = _validated(path, machine)
    if found.verdict.exit_code != 0:
        raise ValueError(f'the honest bag does not pass: {found.verdict.text} {found.verdict.partial}')
    return Honest(Counter(messages), _figures(found))


def judge(mutation, machine, truth):
    """Return (what `validate` says of a mutated bag, why that is wrong or '').

    machine  (manipulator, hydraulics)
    truth    `Honest`
    """
    try:
        found = _validated(mutation.path, machine)
    except PsdynError:
        return REFUSED, ''
    return OUTCOMES[found.verdict.exit_code], wrong_pass(mutation, found, truth)


def _validated(path, machine):
    return validate(path, machine[0], hydraulics=machine[1], config=CONFIG)


def _figures(found):
    return {(check.about, check.figure): check.value for check in found.verdict.checks}


def wrong_pass(mutation, found, truth):
    """Return why the `Validation` of a mutated bag is a wrong PASS; '' where it is none."""
    if found.verdict.verdict != PASS:
        return ''
    if mutation.never_pass and found.verdict.exit_code == 0:
        return 'nobody may call it whole'
    with open_bag(mutation.path) as source:
        used = Counter(source.messages(found.channels.topics))
    recorded = Counter({message: count for message, count in truth.messages.items()
                        if message[0] in found.channels.topics})
    strange, missing = (used - recorded).total(), (recorded - used).total()
    if strange and mutation.sealed:
        return f'{strange} messages were never recorded, and checksums say so'
    if found.verdict.exit_code != 0 or not strange and not missing:
        return ''
    if used.total() != recorded.total():
        return f'{used.total()} messages were used of {recorded.total()}, and nothing tells'
    for check in found.verdict.checks:
        before = truth.figures.get((check.about, check.figure), 0.0)
        if not abs(check.value - before) <= BLURRED * check.tolerance:
            return f'{check.about}: {check.figure} {check.value:.4g}, which of the honest bag is {before:.4g}'
    return ''
