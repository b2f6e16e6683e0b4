"""How the outcomes of many bags are ranked and named."""

from ..metrics import EXIT_CODES, FAIL, INVALID, PARTIAL_PASS, PASS, UNDECIDED
from ..metrics.metrics import BY_NAME

# (verdict, exit code): in words, the worst first: a failure says something of a machine, a bag that is unusable nothing
KINDS = {(FAIL, EXIT_CODES[FAIL]): 'fail', (INVALID, EXIT_CODES[INVALID]): 'unusable',
         (UNDECIDED, PARTIAL_PASS): 'undecided', (PASS, PARTIAL_PASS): 'pass in part',
         (PASS, EXIT_CODES[PASS]): 'pass'}
PAGES = 'index.html', 'summary.json', 'summary.csv', 'overview.png'


def kind_of(outcome):
    """The key in KINDS of an `Outcome`."""
    return outcome.verdict, outcome.exit_code


def counts(outcomes):
    """How many outcomes there are of each kind, in words."""
    kinds = [kind_of(one) for one in outcomes]
    return ', '.join(f'{kinds.count(kind)} {what}' for kind, what in KINDS.items() if kind in kinds)


def excess(check):
    """How much of its tolerance a check of validation.json takes, 1 at the tolerance; infinite for what is unknown."""
    value, tolerance = check['value'], check['tolerance']
    if value is None or tolerance is None:
        return float('inf')
    if BY_NAME[check['figure']].least:
        return (1.0 - value) / (1.0 - tolerance) if tolerance < 1.0 else float('inf')
    if tolerance == 0.0:
        return float('inf') if value else 0.0
    # a delay that may as well be nothing is within its tolerance, whatever its size
    share = abs(value) / tolerance
    return min(share, 1.0) if check['passed'] else share


def worst_check(outcome):
    """The check of an `Outcome` that takes most of its tolerance, or None."""
    return max(outcome.document.get('checks', ()), key=excess, default=None)
