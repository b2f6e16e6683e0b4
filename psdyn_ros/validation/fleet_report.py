"""The page about many bags, and the same as text, JSON and CSV."""

from .report import as_text


def summary(fleet):
    """The verdict and a row for each bag as lines of text."""
    return '\n'.join([fleet.text, '', as_text(table(fleet))])


def table(fleet):
    """Rows of text, the header first: every bag, the worst first."""
    yield 'bag', 'verdict'
    for one in fleet.outcomes:
        yield one.bag, one.text


def write_fleet(folder, fleet):
    pass
