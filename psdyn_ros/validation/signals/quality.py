"""How good the data of a bag are: what came when, and what its signals look like, whatever the model says."""

from dataclasses import dataclass

import numpy as np

from ...model.errors import StateError
from ...model.units import SECOND
from .clock_drift import DAY, LeastLatency
from .signal_quality import Alternation, SignalQuality, Spikes
from .topics import PRESSURES, array_pressures, rows_stamps
from .unit_checks import Units

GAP = 3.0                       # periods without a message
FUTURE = 5_000_000              # ns by which a stamp may be after the receipt
OWN_CLOCK = 1.0                 # s by which a clock moves against that of the receipt
AT_LIMIT = 0.01                 # of the range of a joint, within which it is at its limit
STROKE = 0.02                   # of the range of a joint, by which its pressures must change
LEAST_DRIFT = 3e-5, 2e-3         # s/s, and s in all, by which clocks of two topics run apart
MAX_GAPS = 64                   # that are kept, the longest
PART = 0.05                     # of the time, for which a joint may be missing at the begin or the end
MAX_SHOWN = 3                   # steps of a clock
INVALID, WARNING, NOTE = 'invalid', 'warning', 'note'
# m or rad, m/s or rad/s, Pa, N or N m: smaller ones are no spikes
FLOORS = {'position': 1e-3, 'velocity': 0.05, 'pressure': 5e5, 'effort': 1e3}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    severity  INVALID: no verdict would hold; WARNING; NOTE
    about     topic or signal
    text      what, in words with numbers
    """

    severity: str
    about: str
    text: str


class TopicQuality:
    """When the messages of one topic came.

    Counts: messages, out_of_order and repeated stamps, future, absurd (more than a day off) and zero stamps, missing
    (messages with numbers that are not finite), gaps.
    """

    def __init__(self, period):
        self._period = period
        self.messages = self.out_of_order = self.repeated = self.future = self.absurd = self.zero = self.missing = 0
        self.gaps, self.longest_gap, self.gap_spans = 0, 0.0, []
        self.first = self.last = None
        self._steps = np.zeros(3)           # how many between gaps, their sum and sum of squares [s]
        self.latency = LeastLatency()
        self._clock = np.inf, -np.inf       # extremes of the time of receipt - stamp, by medians of packets [ns]

    def add(self, times, received, stamps, missing):
        """Add messages: times (n,) ns as they are used, received and stamps (n,) ns or None, missing (n,)."""
        self.messages += len(times)
        self.missing += int(missing.sum())
        if stamps is not None:
            self.latency.add(received, stamps)
            late = received - stamps
            middle = float(np.median(late))
            self._clock = min(self._clock[0], middle), max(self._clock[1], middle)
            self.zero += int((stamps == 0).sum())
            self.absurd += int((np.abs(late - middle) > DAY).sum())
            self.future += int((late < -FUTURE).sum()) if abs(middle) < DAY else 0
        before = times if self.last is None else np.concatenate(([self.last], times))
        steps = np.diff(before)
        self.repeated += int((steps == 0).sum())
        self.out_of_order += int((steps < 0).sum())
        self.first = int(times[0]) if self.first is None else self.first
        self.last = int(before.max())
        self._steps_of(before[:-1], steps / SECOND)

    def _steps_of(self, starts, steps):
        wide = steps > GAP * self._period
        for k in np.flatnonzero(wide).tolist():
            self.gap_spans.append((float(starts[k]) / SECOND, float(starts[k]) / SECOND + float(steps[k])))
        if wide.any():
            self.gaps += int(wide.sum())
            self.longest_gap = max(self.longest_gap, float(steps.max()))
            self.gap_spans = sorted(self.gap_spans, key=lambda gap: gap[0] - gap[1])[:MAX_GAPS]
        usual = steps[~wide & (steps > 0)]
        self._steps += len(usual), usual.sum(), usual @ usual

    @property
    def rate(self):
        """Messages per second between gaps."""
        return float(self._steps[0] / self._steps[1]) if self._steps[1] > 0 else float('nan')

    @property
    def jitter(self):
        """Standard deviation of the time between messages [s], gaps left out."""
        count, total, squares = self._steps
        return float(np.sqrt(max(squares / count - (total / count) ** 2, 0.0))) if count > 1 else float('nan')

    @property
    def clock_jump(self):
        """s by which its clock moved against that of the receipt."""
        low, high = self._clock
        return (high - low) / SECOND if high >= low else 0.0

    @property
    def own_clock(self):
        """Whether its clock is not that of the receipt: simulated time, or a clock that was set."""
        return self.clock_jump > OWN_CLOCK

    def as_dict(self):
        """All of it, in SI units."""
        names = ('messages', 'out_of_order', 'repeated', 'future', 'absurd', 'zero', 'missing', 'gaps', 'longest_gap',
                 'rate', 'jitter', 'clock_jump')
        return {name: getattr(self, name) for name in names}


class Quality:
    """Fed by `blocks` with what goes by; read afterwards.

    channels `Channels` of the bag
    topics   {topic: TopicQuality}
    signals  {'<joint>.position', '<cylinder>.pressure_a', '<actuator>.effort': SignalQuality}
    rates    {'<joint>.velocity': Spikes}
    late     {topic: rows that were dropped for not being later than those before}
    set_back {topic: [(s since the start of the bag, s by which its clock was set back there)]}
    """

    def __init__(self, channels, manipulator, hydraulics=None):
        self.channels, self._machine = channels, manipulator
        self._measured = {*channels.states, channels.telemetry, *channels.ports.values()}
        self.topics = {topic: TopicQuality(_or(channels.periods.get(topic), 1.0)) for topic in channels.topics}
        self.signals, self.rates, self._alternations = {}, {}, {}
        self._limits = {f'{name}.position': (float(lower), float(upper)) for name, lower, upper in zip(
            manipulator.actuators, manipulator.limits.lower, manipulator.limits.upper)}
        self.units = Units(manipulator, hydraulics)
        self._cylinders = tuple(hydraulics.cylinders) if hydraulics else ()
        self._moved = {}            # joint -> m or rad by its velocities so far
        self._disagreement = 0.0, {}    # the largest of redundant joints, and that of each loop then
        self._seen = {}             # joint -> s of its first and its last position
        self._peers = _peers(manipulator, channels.joints)
        self._source, self.late, self.set_back = None, {}, {}

    def rows(self, topic, found, times):
        """Take `Rows` of a topic and the times (n,) ns since the start of the bag that they are used at."""
        begin, all_missing, stamps = 0, [], [rows_stamps(rows) for rows in found]
        for rows in found:
            part = times[begin:begin + len(rows.received)]
            begin += len(rows.received)
            missing = np.zeros(len(part), dtype=bool)
            # of other topics NaN may mean that there is none, as in commands
            for field in ('position', 'data', 'pressure') if topic in self._measured else ():
                if field in rows.values:
                    missing |= ~np.isfinite(rows.values[field]).all(axis=1)
            all_missing.append(missing)
            seconds = part / SECOND
            if topic in self.channels.states:
                self._joints(rows, seconds)
            if topic == self.channels.efforts:
                self._efforts(rows, seconds)
            if topic == self.channels.telemetry:
                self._array(rows, seconds)
        order = np.argsort(np.concatenate([rows.places for rows in found]))
        received, missing = (np.concatenate(column)[order] for column in ([rows.received for rows in found],
                                                                          all_missing))
        self.topics[topic].add(times[order], received,
                               None if any(one is None for one in stamps) else np.concatenate(stamps)[order], missing)
        for (cylinder, port), one in self.channels.ports.items():
            if one == topic:
                for rows, part in _parts(found, times):
                    self._add(f'{cylinder}.pressure_{port}', 'pressure', part, rows.values['pressure'][:, 0])
                    self.units.pressure(f'{cylinder}.pressure_{port}', rows.values['pressure'][:, 0], absolute=True)

    def _joints(self, rows, seconds):
        if 'position' not in rows.values:
            return
        position, velocity = rows.values['position'], rows.values.get('velocity')
        known = [name for name in self.channels.joints if name in rows.names]
        ways = {}
        for name in known:
            column = rows.names.index(name)
            self.units.position(name, seconds, position[:, column], None if velocity is None else velocity[:, column])
            there = seconds[np.isfinite(position[:, column])]
            if len(there):
                self._seen[name] = self._seen.get(name, (float(there[0]), 0.0))[0], float(there[-1])
            ways[name] = self._travel(name, seconds, None if velocity is None else velocity[:, column])
            if velocity is not None:
                self.rates.setdefault(f'{name}.velocity', Spikes(FLOORS['velocity'])).add(velocity[:, column])
        for name in known:
            peer = self._peers.get(name, '')
            peer = peer if peer in known else None
            self._add(f'{name}.position', 'position', seconds, position[:, rows.names.index(name)], ways[name],
                      None if peer is None else position[:, rows.names.index(peer)])

    def _travel(self, name, seconds, velocity):
        """(n,) how far a joint has come, by its velocities."""
        if velocity is None or len(seconds) < 2:
            return np.full(len(seconds), self._moved.get(name, 0.0))
        steps = np.clip(np.diff(seconds, prepend=seconds[0]), 0.0, 0.1)
        way = self._moved.get(name, 0.0) + np.cumsum(np.nan_to_num(velocity) * steps)
        self._moved[name] = float(way[-1])
        return way

    def _efforts(self, rows, seconds):
        if 'effort' not in rows.values:
            return
        for name in self._machine.actuators:
            if name in rows.names:
                values = rows.values['effort'][:, rows.names.index(name)]
                self._add(f'{name}.effort', 'effort', seconds, values)
                self.units.effort(name, values)

    def _array(self, rows, seconds):
        for name, label, values in array_pressures(rows):
            if name in self._machine.actuators:
                self._add(f'{name}.{label}', 'pressure', seconds, values)
                self.units.pressure(f'{name}.{label}', values)

    def _add(self, signal, kind, seconds, values, moved=None, peer=None):
        if signal not in self.signals:
            joint = signal.rpartition('.')[0]
            follows = _follows(self._machine, self._peers[joint], joint) if peer is not None else None
            self.signals[signal] = SignalQuality(FLOORS[kind], follows)
            self._alternations[signal] = Alternation(FLOORS[kind])
        self.signals[signal].add(seconds, values, moved, peer)
        self._alternations[signal].add(values)

    def disagree(self, largest, of_loops):
        """Take the largest disagreement of redundant joints of some instants; of_loops: {loop: m, rad} at it."""
        if largest > self._disagreement[0]:
            self._disagreement = largest, of_loops()

    @property
    def loop(self):
        """The loop in which redundant joints disagree most, '' where none is known."""
        loops = self._disagreement[1]
        return max(loops, key=loops.get) if loops else ''

    def finish(self, source, late, set_back):
        """Nothing more comes; late, set_back: see above."""
        self._source, self.late, self.set_back = source, late, set_back
        for signal in self.signals.values():
            signal.finish()

    def findings(self):
        """Every `Finding`, the worst first."""
        found = list(self._of_source()) + list(self._of_clocks())
        for topic, one in self.topics.items():
            found += _of_topic(topic, one, self.set_back.get(topic))
        for name, signal in self.signals.items():
            found += _of_signal(name, signal, self._limits.get(name))
        found += [Finding(INVALID, name, f'it jumps to and fro by {one.size:.3g} from message to message; are there '
                          'two publishers, or two machines, on its topic?')
                  for name, one in self._alternations.items() if one.seen]
        found += [Finding(INVALID, about, text) for about, text in self.dead()]
        found += [_spikes(name, rates) for name, rates in self.rates.items() if rates.spikes]
        found += [Finding(WARNING, about, text) for about, text in self.units.findings()]
        found += [Finding(NOTE, f'{joint}.velocity', 'it is zero all the time; the rate of its position is used')
                  for joint in self.units.silent()]
        return sorted(found, key=lambda finding: (INVALID, WARNING, NOTE).index(finding.severity))

    def incomplete(self):
        """Yield in words which joints are measured for a part of the time in which others are."""
        if self._seen:
            first, last = min(one[0] for one in self._seen.values()), max(one[1] for one in self._seen.values())
            for joint, (begin, end) in self._seen.items():
                if end - begin < (1.0 - PART) * (last - first):
                    yield f'{joint} is measured from {begin:.4g} to {end:.4g} s only'

    def dead(self):
        """Yield (signal, what is wrong) of cylinders with one pressure in each chamber, though the rod moves."""
        for name in self._cylinders:
            rod, *chambers = (self.signals.get(f'{name}.{one}') for one in ('position', *PRESSURES))
            if rod is None or not all(one is not None and one.low == one.high for one in chambers):
                continue
            lower, upper = self._limits[f'{name}.position']
            if rod.high - rod.low > STROKE * (upper - lower):
                yield f'{name}.pressure', (f'{" and ".join(f"{one.low:.4g}" for one in chambers)} Pa in every message, '
                                           f'though it moves by {rod.high - rod.low:.3g}: dead sensors?')

    def _of_source(self):
        if self.channels.others:
            yield Finding(WARNING, self.channels.states[0], self.channels.others_text)
        if self.channels.apart_text:
            yield Finding(WARNING, self.channels.states[0], self.channels.apart_text)
        if self._source is None:
            return
        if self._source.invalid:
            yield Finding(INVALID, 'bag', self._source.invalid)
        if self._source.lost:
            yield Finding(WARNING, 'bag', f'{self._source.lost.bytes} bytes are lost: {self._source.lost.text}')

    def _of_clocks(self):
        for topic, seconds in self.channels.clocks.items():
            states = self.channels.states[0]
            yield Finding(WARNING, topic, f"its stamps differ from those of '{states}' by {seconds:.6g} s (simulated "
                          'and wall time mixed?); times of receipt are used for all')
        yield from self._of_drifts()
        for about, text in self.clocks_set():
            yield Finding(WARNING, about, text)
        if not self.channels.by_stamp and not self.channels.clocks:
            yield Finding(WARNING, self.channels.states[0], 'it has no usable stamps; times of receipt are used')

    def clocks_set(self):
        """Yield (topic, where its clock was set back)."""
        for topic, steps in self.set_back.items():
            if steps:
                shown = ', '.join(f'by {size:.3g} s at {when:.4g} s' for when, size in steps[:MAX_SHOWN])
                more = f' and {len(steps) - MAX_SHOWN} times more' if len(steps) > MAX_SHOWN else ''
                yield topic, (f'its clock was set back {shown}{more}; what comes after that is used as if it had not '
                              'been')

    def _of_drifts(self):
        states = self.channels.states[0]
        usual, _ = self.topics[states].latency.slope
        for topic in self.topics if self.channels.by_stamp else ():
            if topic not in self._measured:
                continue
            slope, seconds = self.topics[topic].latency.slope
            apart = slope - usual
            # of one that is set while it records, that is said
            if abs(apart) > max(LEAST_DRIFT[0], LEAST_DRIFT[1] / max(seconds, 1.0)) and not any(
                    self.topics[one].own_clock or self.set_back.get(one) for one in (topic, states)):
                yield Finding(WARNING, topic, f"its stamps fall behind those of '{states}' by {1e6 * apart:.0f} us/s "
                              'as they are received: clocks that run apart, or a queue that grows')

    def as_dict(self):
        """{'topics', 'signals', 'findings'}, for JSON."""
        return {'topics': {topic: one.as_dict() for topic, one in self.topics.items()},
                'signals': {name: {'samples': one.samples, 'missing': one.missing, 'low': one.low, 'high': one.high,
                                   'spikes': one.spikes, 'largest_spike': one.largest_spike,
                                   'frozen': [(span.start, span.end) for span in one.frozen],
                                   'saturated': [(span.start, span.end) for span in one.saturated]}
                            for name, one in self.signals.items()},
                'findings': [(one.severity, one.about, one.text) for one in self.findings()]}


def _of_topic(topic, one, set_back):
    zero = one.zero if one.zero > 1 else 0      # simulated time begins at zero
    for count, what in ((one.gaps, f'gaps of more than {GAP:g} periods, the longest {one.longest_gap:.3g} s'),
                        (one.out_of_order, 'messages out of order, left out'),
                        (one.repeated, 'messages with the stamp of the one before'),
                        (one.future, f'messages stamped more than {FUTURE / 1e6:g} ms after they were received'),
                        (one.absurd, 'messages with absurd stamps'), (zero, 'messages without a stamp'),
                        (one.missing, 'messages with numbers that are not finite')):
        if count:
            yield Finding(WARNING if count > 1e-3 * one.messages or one.longest_gap > 1.0 else NOTE, topic,
                          f'{count} {what}')
    if one.own_clock and not set_back:
        yield Finding(WARNING, topic, f'its clock moved by {one.clock_jump:.6g} s against that of the receipt '
                      '(simulated time, or a clock that was set)')


def _of_signal(name, signal, limits):
    for spans, what in ((signal.frozen, 'frozen'), (signal.saturated, _end(signal, limits))):
        if spans:
            total = sum(span.end - span.start for span in spans)
            yield Finding(WARNING, name, f'{what} for {total:.3g} s in {len(spans)} stretches, the first from '
                          f'{spans[0].start:.3f} to {spans[0].end:.3f} s')
    if signal.spikes:
        yield _spikes(name, signal)
    # of what is never measured there is nothing to say
    if 0 < signal.missing < signal.samples:
        yield Finding(NOTE, name, f'{signal.missing} of {signal.samples} values are not finite')


def _end(signal, limits):
    """What it is for a signal to rest at its extremes; limits (lower, upper) of the joint, or None."""
    if limits is None:
        return 'clipped at its largest or smallest value'
    margin = AT_LIMIT * (limits[1] - limits[0])
    there = signal.low <= limits[0] + margin or signal.high >= limits[1] - margin
    return 'at the end of its range' if there else 'clipped where the joint has no limit'


def _spikes(name, signal):
    return Finding(WARNING, name, f'{signal.spikes} spikes, the largest {signal.largest_spike:.3g}')


def _peers(manipulator, joints):
    """joint -> another measured joint of its loop, of which it must follow the motion."""
    peers = {}
    for triangle in manipulator.machine.triangles:
        # of the barrel's angle two strokes may follow
        names = [one.name for one in (triangle.rod, triangle.boom, triangle.barrel) if one.name in joints]
        peers.update((name, next(other for other in names if other != name)) for name in names
                     if len(names) > 1 and (name != triangle.rod.name or triangle.boom.name in names))
    return peers


def _follows(manipulator, peer, joint):
    """A function of the position of one joint of a loop that gives that of another, NaN where there is none."""
    at_rest = dict(zip(manipulator.joints, manipulator.joint_state(manipulator.initial_position)[1]))
    rod = next(one.rod.name for one in manipulator.machine.triangles
               if peer in (one.rod.name, one.boom.name, one.barrel.name))
    names = [peer if name == rod else name for name in (*manipulator.actuators, *manipulator.passive_joints)]
    measured = manipulator.joint_map(names)
    place = manipulator.joints.index(joint)

    def follow(position):
        try:
            x, _, _ = measured.state([position if name == peer else at_rest[name] for name in names])
            return float(manipulator.joint_state(x)[1][place])
        except StateError:
            return np.nan
    return follow


def _parts(found, times):
    begin = 0
    for rows in found:
        yield rows, times[begin:begin + len(rows.received)] / SECOND
        begin += len(rows.received)


def _or(value, other):
    return other if value is None or value != value else value
