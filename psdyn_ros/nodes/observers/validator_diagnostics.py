"""What the node `validator` says in diagnostics: of the machine, and of each actuator."""

from ...model.units import SECOND
from ...validation.metrics.rolling import ERROR, LEVELS, OK, WARN, worst
from ..messages import conversions
from ..runtime.rejection_log import brief

STALE = 'stale'
SEVERAL = 5                 # states refused in a row that are no accident
LAGGING = SECOND // 2       # ns by which pressures may be older than states


class ValidatorReport:
    """Makes diagnostics of a `LiveValidator`.

    name        of the node
    live        the `LiveValidator`
    rejections  `Rejections` of the node
    topics      (of states, of pressures or '')
    timeout     s of ROS time without a state after which nothing is known any more
    logger      for actuators that leave their tolerance
    """

    def __init__(self, name, live, rejections, topics, timeout, logger):
        self._name, self._live, self._rejections, self._topics = name, live, rejections, topics
        self._timeout, self._logger = timeout, logger
        self._came = None           # ns on the clock of the node, of the last state that was taken
        self._refused = {}          # topic -> why the last message was refused
        self._in_a_row = 0          # states that were refused since one was taken
        self._before = {}           # actuator -> level at the last report
        self._rejected_before = self._restarts_before = 0
        self._clock = None          # ns at the last report

    def came(self, now):
        """A state was taken, at ns on the clock of the node."""
        self._came = now
        self._in_a_row = 0

    def refused(self, topic, error):
        """A message was refused."""
        self._refused[topic] = brief(error)
        self._in_a_row += topic == 'joint_states'

    def message(self, now, simulated):
        """The DiagnosticArray at ns on the clock of the node; simulated: it is /clock."""
        stands = simulated and self._clock == now
        self._clock = now
        silent = self._silence(now)
        figures = self._live.metrics.figures() if self._live.metrics is not None else ()
        statuses = [self._machine(figures, silent, stands, now)]
        for one in figures:
            statuses.append(self._actuator(one, silent))
        if not figures:
            text = silent or 'not judged yet'
            statuses += [conversions.diagnostic_status(f'{self._name}: {name}', STALE if silent else WARN, text, {})
                         for name in self._live.manipulator.actuators]
        return conversions.diagnostics_of(now, statuses)

    def _silence(self, now):
        """In words that states are missing, '' where they are not; a clock that stands is no reason."""
        if self._came is None:
            return f'no state on {self._topics[0]}'
        self._came = min(self._came, now)       # the clock went back
        seconds = (now - self._came) / SECOND
        return f'no state on {self._topics[0]} for {seconds:.3g} s' if seconds > self._timeout else ''

    def _actuator(self, figures, silent):
        level = STALE if silent else figures.level
        if level == ERROR and self._before.get(figures.name) != ERROR:
            self._logger.warning(f'{figures.name}: {figures.summary}')
        self._before[figures.name] = level
        values = {'rms [N or N m]': figures.rms, 'nrmse': figures.nrmse, 'bias [N or N m]': figures.bias,
                  'scale [N or N m]': figures.scale, 'delay [s]': figures.delay, 'standing': figures.standing,
                  'known [s]': figures.seconds}
        values.update(_judged(figures.checks))
        return conversions.diagnostic_status(f'{self._name}: {figures.name}', level, silent or figures.summary, values)

    def _machine(self, figures, silent, stands, now):
        live, rejections = self._live, self._rejections
        said = [(one.level, f'{one.name}: {one.summary}') for one in figures if one.level != OK]
        said += self._findings(figures)
        said.sort(key=lambda one: -LEVELS.index(one[0]))
        level = worst(one[0] for one in said)
        words = [text for _, text in said] or [f'{len(figures)} actuators within their tolerances']
        if self._in_a_row >= SEVERAL:
            level, words = ERROR, [f'states are refused: {self._refused["joint_states"]}']
        elif silent:
            level, words = STALE, [silent]
        if stands:
            words.append('the clock stands' if now else 'no time on /clock')
        values = {'joints': ', '.join(live.joints), 'restarts': live.restarts, **rejections.values()}
        values.update({f'last rejected {topic}': brief(reason) for topic, reason in rejections.reasons.items()})
        metrics = live.metrics
        if metrics is not None:
            values.update({'period [s]': metrics.period, 'window [s]': metrics.seconds, 'coverage': metrics.coverage,
                           'behind the states [s]': live.behind})
            values.update(_judged(metrics.machine_checks()))
        force = live.force
        if force is not None:
            values[f'force on {live.contact.link} [N]'] = _vector(force.force)
            values['its standard deviation [N]'] = _vector(force.deviation)
            values['does not show'] = '; '.join(_vector(one) for one in force.unobservable) or 'none'
        return conversions.diagnostic_status(f'{self._name}: machine', level, '; '.join(words), values)

    def _findings(self, figures):
        """[(level, words)] of what is about no single actuator."""
        found, live, metrics = [], self._live, self._live.metrics
        tolerance, rejected = live.settings.machine, self._rejections.total
        if rejected > self._rejected_before:
            found.append((WARN, f'{rejected - self._rejected_before} messages rejected'))
        if live.restarts > self._restarts_before:
            found.append((WARN, 'time, joints or rate began anew'))
        self._rejected_before, self._restarts_before = rejected, live.restarts
        if self._topics[1]:
            found += self._of_pressures()
        if metrics is None:
            return [*found, (WARN, 'not judged yet')]
        if live.trouble:
            found.append((ERROR, live.trouble))
        elif metrics.seconds and not any(one.seconds for one in figures):
            found.append((WARN, 'no effort of any actuator is known'))
        checks = metrics.machine_checks()
        if checks:
            found += [one for one in (metrics.level(checks),) if one[0] != OK]
        if metrics.coverage < tolerance.coverage:
            found.append((WARN, f'the state is known at {metrics.coverage:.0%} of the instants'))
        return found

    def _of_pressures(self):
        age = self._live.pressure_age
        if age is None or age > LAGGING:
            refused = self._refused.get('pressures')
            why = f'pressures are refused: {refused}' if refused else f'no pressures on {self._topics[1]}'
            yield WARN, why if age is None else f'{why} for {age / SECOND:.3g} s'


def _judged(checks):
    values = {}
    for check in checks:
        values[f'judged {check.figure}'] = check.value
        values[f'tolerance of {check.figure}'] = check.tolerance
    return values


def _vector(values):
    return ' '.join(f'{value:.4g}' for value in values)
