"""State of passive joints: is it measured where it should be, and can it be computed?"""

from .check import DEGRADE, REDUCED, Check, Finding, Result, Row, warning


class PassiveJointCheck(Check):
    """Watches the `PassiveStates` of the law; a stop under the law goes on with what is estimated."""

    rows = (
        Row('F44', 'passive_silent', DEGRADE, 'passive joints that are to be measured are not, for 0.1 s', REDUCED, 2,
            0.1),
        warning('F44', 'passive_jump', 'a passive joint farther from where it was than its rate explains',
                'it counts as not measured'),
        warning('F44', 'passive_imu', 'an inertial sensor on a load whose axes cannot be those of its link',
                'it counts as not measured'),
        Row('F44', 'passive_unknown', DEGRADE, 'the motion of passive joints cannot be computed', REDUCED, 2),
    )
    def __init__(self, config, law):
        self._passive = law.load.passive
        self.required = self._passive is not None
        self._rejected = 0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.stamp:
            return None
        passive, findings = self._passive, []
        if passive.rejected > self._rejected:
            findings.append(Finding('passive_jump', f'{", ".join(passive.joints)}: a measurement is not used'))
        self._rejected = passive.rejected
        if passive.imu is not None and passive.imu.problem:
            findings.append(Finding('passive_imu', passive.imu.problem))
        silent = passive.silent(inputs.time)
        if silent and passive.needs_measurements:
            findings.append(Finding('passive_silent', f'{", ".join(silent)} not measured: estimated', Result.STALE))
        if passive.problem:
            findings.append(Finding('passive_unknown', f'{", ".join(passive.joints)}: {passive.problem}; taken as '
                                    'hanging at rest', Result.ERROR))
        return findings
