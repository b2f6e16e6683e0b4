"""Which topics of a bag are about a machine: found by their types, the joints in them and their names."""

import math
import re
from dataclasses import dataclass, field, fields

import numpy as np

from ...model.errors import MeasurementError, PsdynError, did_you_mean, shorten
from ...model.units import SECOND
from ..bags.bulk_decoder import ARRAY, FIELDS, JOINT_STATE, PRESSURE, TRAJECTORY, Decoder, readable
from ..bags.recording import BagError

PRESSURES = ('pressure_a', 'pressure_b')
STAMP = 'stamp'             # label of the column of an array that says when, in s
SAMPLES = 512               # messages of a topic from which its period is taken
MAX_BAD = 4 * SAMPLES       # messages that cannot be read before the others are not looked at
# in names of topics, between slashes and underscores: what is not measured
UNMEASURED = re.compile(r'(^|[/_])(ground_truth|truth|commands?|references?|desired|setpoint|predicted|feedforward|'
                        r'targets?|goal)($|[/_])')
COMMANDS = re.compile(r'(^|[/_])commands?($|[/_])')
REFERENCES = re.compile(r'(^|[/_])(references?|desired|setpoint)($|[/_])')
USUAL = '/joint_states'
SAME_CLOCK = SECOND         # ns by which clocks of topics may differ and still be the same
PERIOD = 1e-4, 10.0         # s, of states


@dataclass(frozen=True)
class Channels:
    """Where in a bag the quantities of a machine are.

    states     topics with measured joints, the one first whose instants are those of blocks
    joints     the joints that they measure and the machine has
    efforts    topic whose JointState.effort is measured, '' where there is none
    telemetry  topic with chamber pressures as a labelled array, or ''
    ports      {(cylinder, 'a' or 'b'): topic of FluidPressure, absolute}
    commands   topic, or ''
    reference  topic, or ''
    periods    {topic: median period [s]}
    offsets    {topic: median of the time of receipt - stamp [ns]}, of those with stamps
    by_stamp   whether stamps say when; else the time of receipt does, since stamps are of several clocks or none
    labels     {topic: names in its first message}
    hydraulic  whether any topic, measured or not, has chamber pressures of its cylinders
    others     topics with states of another machine of this kind, in namespaces of their own; nothing there is used
    """

    states: tuple
    joints: tuple
    efforts: str = ''
    telemetry: str = ''
    ports: dict = field(default_factory=dict)
    commands: str = ''
    reference: str = ''
    periods: dict = field(default_factory=dict)
    offsets: dict = field(default_factory=dict)
    by_stamp: bool = True
    labels: dict = field(default_factory=dict)
    hydraulic: bool = False
    others: tuple = ()

    @property
    def topics(self):
        """Every topic, once."""
        named = (*self.states, self.efforts, self.telemetry, *self.ports.values(), self.commands, self.reference)
        return tuple(dict.fromkeys(topic for topic in named if topic))

    @property
    def period(self):
        """s between the instants of blocks."""
        return self.periods[self.states[0]]

    @property
    def others_text(self):
        """In words, which machines in the bag are not looked at; '' where there is one."""
        if not self.others:
            return ''
        return (f"the bag has {1 + len(self.others)} machines: '{self.states[0]}' and what is nearest to it is used, "
                f'{", ".join(self.others)} is not; choose another one with --topic states=TOPIC')

    @property
    def apart_text(self):
        """In words, which topic is of another namespace than the states; '' where none is."""
        states = self.states[0].split('/')
        for topic in (self.efforts, self.telemetry, *self.ports.values()):
            names = topic.split('/')
            if len(states) > 2 < len(names) and names[1] != states[1]:
                return f"'{self.states[0]}' and '{topic}' are of two namespaces; are they of one machine?"
        return ''

    @property
    def clocks(self):
        """Topics whose stamps are of another clock than those of the states: {topic: s by which they differ}."""
        first = self.offsets.get(self.states[0])
        if first is None:
            return {}
        return {topic: (offset - first) / SECOND for topic, offset in self.offsets.items()
                if abs(offset - first) > SAME_CLOCK}


OVERRIDES = ('states', 'efforts', 'pressures', 'commands', 'reference')
NONE = 'none'               # as an override: do without


def find_topics(source, manipulator, overrides=None):
    """Return the `Channels` of a machine in a `BagSource`.

    overrides: {'states', 'efforts', 'pressures', 'commands', 'reference': topic}; 'none' does without; of states, and
    of pressures by FluidPressure, also a list.  Raises BagError that lists what is there where states are missing, and
    says which names do not fit where it is a bag of another machine.
    """
    overrides = dict(overrides or {})
    for key, given in overrides.items():
        if key not in OVERRIDES:
            raise BagError(f"there is no topic for '{shorten(str(key))}'{did_you_mean(key, OVERRIDES)}")
        for topic in [given] if isinstance(given, str) else given:
            if topic != NONE:
                source.number(topic)
    seen = {topic.name: _Seen(source, topic) for topic in source.topics
            if topic.count and not readable(source.schemas[topic.name]) and topic.msgtype}
    finder = _Finder(source, manipulator, seen, overrides)
    states, joints = finder.states()
    telemetry, ports = finder.pressures()
    found = Channels(states, joints, finder.efforts(states), telemetry, ports, finder.commands(), finder.reference())
    used = [topic for topic in found.topics if topic in seen]
    offsets = {topic: seen[topic].offset for topic in used if seen[topic].offset is not None}
    first = offsets.get(states[0])
    by_stamp = first is not None and all(abs(offset - first) <= SAME_CLOCK for offset in offsets.values())
    periods = {topic: seen[topic].period(by_stamp, manipulator.joints) for topic in used}
    if math.isnan(periods[states[0]]):
        raise BagError(f"the messages on '{states[0]}' are all of one time; expected at least two of different times")
    if not PERIOD[0] <= periods[states[0]] <= PERIOD[1]:
        raise BagError(f"the messages on '{states[0]}' come every {periods[states[0]]:.3g} s; expected "
                       f'{PERIOD[0]:g} to {PERIOD[1]:g} s')
    changes = {'periods': periods, 'offsets': offsets, 'by_stamp': by_stamp,
               'labels': {topic: seen[topic].names for topic in used}, 'hydraulic': finder.hydraulic(),
               'others': finder.others}
    return Channels(**{**{one.name: getattr(found, one.name) for one in fields(found)}, **changes})


class _Seen:
    """The first messages of a topic."""

    def __init__(self, source, topic):
        self.name, self.msgtype, self.count = topic
        decoder, taken = Decoder(topic.msgtype), []
        for packet in source.packets((topic.name,)):
            taken += decoder.decode(packet)
            # of a topic on which nothing can be read it is enough to have seen some
            if sum(len(rows.received) for rows in taken) >= min(SAMPLES, topic.count) or decoder.bad >= MAX_BAD:
                break
        self._rows, self.bad = taken, decoder.bad

    @property
    def names(self):
        """Those in the messages."""
        return tuple(dict.fromkeys(name for rows in self._rows for name in rows.names))

    def fields(self):
        """Those that some message has with a finite number in it."""
        return {field for rows in self._rows for field, values in rows.values.items() if np.isfinite(values).any()}

    def _stamps(self):
        return [(rows.received, rows_stamps(rows)) for rows in self._rows if rows_stamps(rows) is not None]

    @property
    def offset(self):
        """Median of the time of receipt - stamp [ns]; None where stamps are missing, zero or frozen."""
        pairs = self._stamps()
        if not pairs:
            return None
        received, stamps = (np.concatenate(column) for column in zip(*pairs))
        if len(stamps) > 2 and len(np.unique(stamps)) < 0.5 * len(stamps) or not stamps.any():
            return None
        return int(np.median(received - stamps))

    def period(self, by_stamp, joints):
        """Median period [s] of the messages about the same joints, of the rarest; NaN of single messages.

        Several publishers may share a topic, each with joints of its own; some may have none of these `joints`.
        """
        groups = {}
        for rows in self._rows:
            stamps = rows_stamps(rows) if by_stamp else None
            groups.setdefault(frozenset(rows.names), []).append(rows.received if stamps is None else stamps)
        known = {names: times for names, times in groups.items() if not names.isdisjoint(joints)} or groups
        steps = [np.diff(np.sort(np.concatenate(times))) for times in known.values()]
        return max((float(np.median(one[one > 0])) / SECOND for one in steps if (one > 0).any()), default=float('nan'))


def rows_stamps(rows):
    """(n,) ns that messages say they are of, None where they do not: a header, or a column of an array."""
    if rows.stamps is not None:
        return rows.stamps
    column = array_columns(rows.names).get(STAMP)
    if column is None or 'data' not in rows.values or column >= rows.values['data'].shape[1]:
        return None
    stamps = rows.values['data'][:, column]
    return np.where(np.abs(stamps) < 9e9, np.nan_to_num(stamps) * SECOND, 0).round().astype(np.int64)


def array_columns(labels):
    """{quantity: its column in the first row} of a labelled array of things x quantities; {} where it is none."""
    return {name: k for k, name in enumerate(labels[1].split(','))} if len(labels) == 2 else {}


def array_pressures(rows):
    """Yield (thing, one of PRESSURES, (n,) its column) of `Rows` of a labelled array; nothing where it has none."""
    quantities, data = array_columns(rows.names), rows.values.get('data')
    if data is not None and set(PRESSURES) <= quantities.keys():
        things, width = rows.names[0].split(','), len(rows.names[1].split(','))
        for k, name in enumerate(things) if data.shape[1] == len(things) * width else ():
            yield from ((name, label, data[:, k * width + quantities[label]]) for label in PRESSURES)


class _Finder:
    """Looks for one quantity after the other."""

    def __init__(self, source, manipulator, seen, overrides):
        self._source, self._machine, self._seen, self._overrides = source, manipulator, seen, overrides
        self.others = ()

    def _given(self, key, *types):
        """Topics that the user gave, '' for none of them, None where nothing was said."""
        if key not in self._overrides:
            return None
        given = self._overrides[key]
        topics = [given] if isinstance(given, str) else list(given)
        if topics == [NONE]:
            return []
        for topic in topics:
            if topic not in self._seen:
                reason = readable(self._source.schemas[topic]) or 'it has no messages'
                raise BagError(f"topic '{topic}' for {key} cannot be read: {reason}")
            if self._seen[topic].msgtype not in types:
                raise BagError(f"topic '{topic}' for {key} is of {self._seen[topic].msgtype}; expected "
                               f'{" or ".join(types)}')
        return topics

    def _of(self, msgtype):
        return [seen for seen in self._seen.values() if seen.msgtype == msgtype]

    def states(self):
        """(topics, joints measured)."""
        given = self._given('states', JOINT_STATE)
        if given is not None:
            candidates = [self._seen[topic] for topic in given]
        else:
            candidates = [seen for seen in self._of(JOINT_STATE) if not UNMEASURED.search(seen.name)]
        candidates = [seen for seen in candidates if 'position' in seen.fields()]
        if not candidates:
            raise BagError(f"bag '{self._source.path}' has no topic with measured joints ({JOINT_STATE} with "
                           f'positions); it has:\n{self._source.listing()}{self._unreadable()}')
        known = {seen.name: tuple(name for name in seen.names if name in self._machine.joints) for seen in candidates}
        if not any(known.values()):
            raise BagError(self._wrong_robot(candidates))
        candidates = [seen for seen in candidates if known[seen.name]]
        candidates.sort(key=lambda seen: (
            self._problem(known[seen.name]) is not None, seen.name != USUAL, not seen.name.endswith(USUAL),
            -len(known[seen.name]), -seen.count, seen.name))
        if given is None and self._problem(known[candidates[0].name]) is None:
            candidates = candidates[:1]
        others = self._leave_out_others(candidates[0].name) if len(candidates) == 1 else ()
        self.others = others if given is None else ()
        joints = tuple(dict.fromkeys(name for seen in candidates for name in known[seen.name]))
        problem = self._problem(joints)
        if problem:
            others = sorted({name for seen in candidates for name in seen.names} - set(joints))
            unknown = f'; not of this machine: {_some(others)}' if others else ''
            raise BagError(f"bag '{self._source.path}': {problem}{unknown}")
        return tuple(seen.name for seen in candidates), joints

    def _leave_out_others(self, first):
        """Forget what is nearer to the states of another machine than to those that are used, on `first`.

        Returns topics of all states of a machine that have the same name as `first` in another namespace.
        """
        def complete(seen):
            joints = tuple(name for name in seen.names if name in self._machine.joints)
            return 'position' in seen.fields() and joints and self._problem(joints) is None
        others = tuple(seen.name for seen in self._of(JOINT_STATE) if seen.name != first
                       and not UNMEASURED.search(seen.name) and complete(seen)
                       and seen.name.rpartition('/')[2] == first.rpartition('/')[2])
        given = {topic for one in self._overrides.values() for topic in ([one] if isinstance(one, str) else one)}
        self._seen = {topic: seen for topic, seen in self._seen.items() if topic in given or all(
            _common(topic, first) >= _common(topic, other) for other in others)}
        return others

    def _problem(self, joints):
        """Why joints are not enough to know all others, None where they are."""
        try:
            self._machine.joint_map(joints)
        except (MeasurementError, PsdynError) as error:
            return str(error)
        return None

    def _wrong_robot(self, candidates):
        names = sorted({name for seen in candidates for name in seen.names})
        hints = [f"'{shorten(name)}'{did_you_mean(name, self._machine.joints)}" for name in names[:1]]
        return (f"bag '{self._source.path}' is not of '{self._machine.name}': none of its joints {_some(names)} on "
                f'{", ".join(seen.name for seen in candidates)} is one of {_some(self._machine.joints)}'
                f'{" (" + hints[0] + ")" if hints and "did you mean" in hints[0] else ""}')

    def _unreadable(self):
        """Say why topics whose type would fit are not used."""
        lines = [f'  {topic.name}: {readable(self._source.schemas[topic.name])}' for topic in self._source.topics
                 if self._source.schemas[topic.name].msgtype in FIELDS and topic.name not in self._seen and topic.count]
        lines += [f'  {seen.name}: its messages contradict themselves' for seen in self._seen.values() if seen.bad]
        return '\nthese cannot be read:\n' + '\n'.join(lines) if lines else ''

    def efforts(self, states):
        """The topic whose efforts are those of actuators."""
        given = self._given('efforts', JOINT_STATE)
        if given is not None:
            return given[0] if given else ''
        others = sorted(seen.name for seen in self._of(JOINT_STATE) if not UNMEASURED.search(seen.name))
        for topic in dict.fromkeys((*states, *others)):
            seen = self._seen[topic]
            if 'effort' in seen.fields() and set(seen.names) & set(self._machine.actuators):
                return topic
        return ''

    def pressures(self):
        """(topic of a labelled array or '', {(cylinder, port): topic})."""
        given = self._given('pressures', ARRAY, PRESSURE)
        if given is not None:
            arrays = [self._seen[topic] for topic in given if self._seen[topic].msgtype == ARRAY]
            single = [self._seen[topic] for topic in given if self._seen[topic].msgtype == PRESSURE]
        else:
            arrays = [seen for seen in self._of(ARRAY) if not UNMEASURED.search(seen.name)]
            single = [seen for seen in self._of(PRESSURE) if not UNMEASURED.search(seen.name)]
        arrays = [seen for seen in arrays if self._has_pressures(seen)]
        if given and not arrays and not single:
            raise BagError(f"topic '{given[0]}' for pressures has no labels {', '.join(PRESSURES)} of cylinders of "
                           f"'{self._machine.name}'")
        ports = {}
        for seen in single:
            port = pressure_port(seen, self._machine.actuators)
            if port:
                ports.setdefault(port, seen.name)
        if arrays:
            return min(arrays, key=lambda seen: (-seen.count, seen.name)).name, {}
        whole = {cylinder for cylinder, _ in ports if {(cylinder, 'a'), (cylinder, 'b')} <= ports.keys()}
        return '', {port: topic for port, topic in ports.items() if port[0] in whole}

    def hydraulic(self):
        """Whether any topic, measured or not, has chamber pressures of cylinders of this machine."""
        return (any(self._has_pressures(seen) for seen in self._of(ARRAY))
                or any(pressure_port(seen, self._machine.actuators) for seen in self._of(PRESSURE)))

    def _has_pressures(self, seen):
        labels = seen.names
        return (len(labels) == 2 and set(PRESSURES) <= set(labels[1].split(','))
                and bool(set(labels[0].split(',')) & set(self._machine.actuators)))

    def commands(self):
        """The topic of commands to the actuators."""
        given = self._given('commands', JOINT_STATE, ARRAY)
        if given is not None:
            return given[0] if given else ''
        actuators = set(self._machine.actuators)
        named = [seen for seen in self._of(JOINT_STATE) if COMMANDS.search(seen.name) and set(seen.names) & actuators]
        if named:
            return max(named, key=lambda seen: (len(set(seen.names) & actuators), seen.count, seen.name)).name
        return ''

    def reference(self):
        """The topic of the reference."""
        given = self._given('reference', TRAJECTORY, JOINT_STATE)
        if given is not None:
            return given[0] if given else ''
        named = [seen for seen in (*self._of(TRAJECTORY), *self._of(JOINT_STATE)) if REFERENCES.search(seen.name)
                 and set(seen.names) & set(self._machine.joints)]
        return named[0].name if named else ''


def pressure_port(seen, actuators):
    """(cylinder, 'a' or 'b') that a topic of FluidPressure is about, by its name and its frame; None."""
    match = re.search(r'(?:^|[/_])(?:port_|pressure_|chamber_)?([ab])$', seen.name.lower())
    if not match:
        return None
    text = seen.name[:match.start()]
    parts = [part for part in text.split('/') if part]
    for name in sorted(actuators, key=len, reverse=True):
        if name in parts or name in seen.names or any(re.search(rf'(^|_){re.escape(name)}(_|$)', one) for one in parts):
            return name, match.group(1)
    return None


def _common(one, other):
    """How many names of namespaces two topics have in common, from the root on."""
    count = 0
    for mine, theirs in zip(one.split('/')[:-1], other.split('/')[:-1]):
        if mine != theirs:
            break
        count += 1
    return count


def _some(names):
    names = [shorten(name) for name in names]
    return ', '.join(names[:8]) + (f', ... ({len(names)})' if len(names) > 8 else '')
