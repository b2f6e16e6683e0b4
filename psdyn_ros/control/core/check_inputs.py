"""What a check may look at, and the evaluation of all checks at their points of a cycle."""

from ..monitors.check import When
from .output_selector import UNDER_LAW


class CheckInputs:
    """Measurements, reference, outputs and sub-state, as of the moment at which a check is evaluated.

    Arrays are those of the controller: not to be written to, nor kept beyond the evaluation without a copy.

    machine, declaration, hydraulics  of the `ControllerConfig`; hydraulics None where nothing is driven by oil
    period      s
    law         `ControlLaw`
    now         ns of the steady clock
    clock       ns on the clock of ages: the steady one, or simulated time
    publishing  whether outputs are published: from activation to the end of deactivation
    streaming   whether the reference is streamed
    """

    def __init__(self, config, law, inputs, selector, states):
        self.machine, self.declaration, self.hydraulics = config.machine, config.declaration, config.hydraulics
        self.period, self.law = config.period, law
        self.publishing = self.streaming = False
        self.now = self.clock = 0
        self._inputs, self._selector, self._states = inputs, selector, states
        self._state, self._pressures, self._gate = inputs.checks, inputs.pressure_check, selector.gate

    @property
    def time(self):
        """s on the clock of trajectories, of the last accepted state."""
        return self._inputs.time

    # measurements

    @property
    def x(self):
        """(dof,) m and rad, of the last accepted state; None before the first."""
        return self._state.x

    @property
    def xd(self):
        """(dof,) m/s and rad/s, of the last accepted state; None before the first."""
        return self._state.xd

    @property
    def stamp(self):
        """ns, of the last accepted state on the clock of stamps; 0 before the first."""
        return self._state.input.stamp

    @property
    def age(self):
        """s since the last accepted state was measured."""
        return self._inputs.age

    @property
    def pressures(self):
        """(cylinders, 2) Pa gauge of chambers A and B, the last accepted ones; None before the first."""
        return self._inputs.pressures

    @property
    def supply(self):
        """Pa gauge, of the pump; None where it is not measured."""
        return self._inputs.supply

    @property
    def pressure_stamp(self):
        """ns, of the last accepted pressures; 0 before the first."""
        return self._pressures.input.stamp

    # reference and outputs

    @property
    def under_law(self):
        """Whether the outputs are those of the law, and not of a ramp or the safe ones."""
        return self._selector.mode is UNDER_LAW

    @property
    def desired(self):
        """(3, dof) x, xd, xdd of the reference at the last update of the law; None where none is followed."""
        return self._selector.desired

    @property
    def reference_rate(self):
        """(dof,) velocity of the reference, zero where none is followed."""
        return self._selector.rate

    @property
    def predicted_efforts(self):
        """(actuators,) N, N m that the model expects of the reference at the last update, with friction."""
        return self.law.predicted_efforts

    @property
    def stream_age(self):
        """s since the last streamed point; 0 where none is streamed."""
        return self.law.reference.stream_age(self._inputs.time) if self.streaming else 0.0

    @property
    def command(self):
        """(actuators,) last output, in the unit of each tier; NaN: left out."""
        return self._gate.last

    @property
    def clamped(self):
        """How often outputs were beyond their limit or rate, since the start."""
        return self._gate.clamped

    # sub-state

    @property
    def state(self):
        """`State` as of the last cycle."""
        return self._states.state


class CheckRunner:
    """Evaluates the checks, and reports their findings.

    checks  `Check`s, in the order of their evaluation
    states  `SafetyStates`

    `inputs` is the `CheckInputs`, to be set before the first evaluation.
    """

    def __init__(self, checks, states):
        self.inputs, self._states, self._checks = None, states, checks
        self._evaluations = [tuple((check.evaluate, frozenset(row.name for row in check.rows))
                                   for check in checks if check.required and check.when is when) for when in When]

    def run(self, when):
        """Evaluate the checks of a `When`, and report what they found."""
        inputs, states = self.inputs, self._states
        unsettled = states.unsettled
        for evaluate, names in self._evaluations[when]:
            findings = evaluate(inputs)
            if findings:
                self.report(findings)
            # else it changes nothing to report what passes
            if unsettled and findings is not None:
                states.pass_others(inputs.clock, names, [finding.condition for finding in findings])

    def report(self, findings):
        """Report `Finding`s; conditions without one do not pass."""
        clock, report = self.inputs.clock, self._states.report
        for name, text, result, demand in findings:
            report(clock, name, result, text, demand)

    def restart(self):
        """As `Check.restart` of all of them."""
        for check in self._checks:
            check.restart()

    def rebase(self, jump):
        """As `Check.rebase` of all of them."""
        for check in self._checks:
            check.rebase(jump)
