"""What a control core reports of itself, for diagnostics."""

from ..monitors.clock import OverrunCheck
from ..monitors.singularity import SingularityCheck
from ..monitors.tracking import TrackingCheck


def status(core):
    """{what: number or text} of a `ControlCore`, units in the names; every reason, and counts of what happened."""
    inputs, states, selector, state = core.inputs, core.states, core.selector, core.inputs.state_check
    found = {
        'state': states.state.name,
        'enabled': states.enabled,
        'speed of the reference': selector.speed,
        'delay of streamed points [ms]': core.law.reference.limits.stream_delay * 1e3,
        'feedforward': float(core.law.feedforward_scale),
        'tracking error [share of its tolerance]': float(core.checks[TrackingCheck].share),
        'distance from a singularity': float(core.checks[SingularityCheck].measure),
        'residual of the loops [m]': float(state.residual),
        'disagreement of velocities [share of what is allowed]': state.disagreement(),
        'states missed': state.input.missed,
        'states rejected': state.rejected,
        'cycles missed': core.checks[OverrunCheck].watch.missed,
        'commands clamped to their range': sum(selector.gate.range_clamps),
        'commands clamped to their rate': sum(selector.gate.rate_clamps),
        'commands clipped by the law': int(core.law.saturations.sum()),
    }
    passive = core.law.load.passive
    if passive is not None:
        seen = set(passive.joints) - set(passive.silent(inputs.time)) if inputs.stamp else set()
        found |= {'passive joints': passive.source + (f': {passive.problem}' if passive.problem else ''),
                  'passive joints measured': ', '.join(name for name in passive.joints if name in seen) or 'none',
                  'passive measurements rejected': passive.rejected,
                  'inertial sensor': 'none' if passive.imu is None else passive.imu.problem or passive.imu.link,
                  'shaped of the last motion': core.law.reference.shaped_by}
        damping = core.law.reference.damping
        if damping is not None and damping.declared:
            found |= {'swing damping': damping.problem and f'off: {damping.problem}' or 'on',
                      'deviation that damps a swing [share of its bound]': damping.share}
        for name, position, rate in zip(passive.joints, passive.position, passive.rate):
            found |= {f'{name} [rad, m]': float(position), f'rate of {name} [rad/s, m/s]': float(rate)}
    for what, one in (('state', state.input), ('pressures', inputs.pressure_check.input)):
        age = one.age(inputs.clock)
        if age is not None:
            found[f'age of the {what} [ms]'] = age * 1e-6
    found |= {f'reason: {name}': reason for name, reason in states.reasons.items()}
    return found | {f'count: {name}': count for name, count in states.counts.items() if count}
