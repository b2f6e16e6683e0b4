"""The order in which the dependent joints of a cluster are eliminated, so that those of one leg meet its rows only."""
import numpy as np

from ..kernels.loops.records import COLUMN, POSITION


def relate(rows, tied):
    """Set in ROW records which joint carries both of their bodies, and which take the points of the row before."""
    before = None
    for row in rows:
        paths = [[], []]
        for path, j in zip(paths, (int(row['a']), int(row['b']))):
            while j >= 0:
                path.append(j)
                j = int(tied[j]['parent'])
        row['meet'] = next((j for j in paths[0] if j in paths[1]), -1)
        same = before is not None and row['kind'] == before['kind'] == POSITION
        row['repeats'] = same and all((row[name] == before[name]).all() for name in ('a', 'b', 'pa', 'pb'))
        before = row


def row_pattern(rows, tied, dependent):
    """Return which of the `dependent` joints (rows of TIED) each ROW feels: (rows, dependent) of bool."""
    pattern = np.zeros((len(rows), len(dependent)), dtype=bool)
    place = {j: c for c, j in enumerate(dependent)}
    for felt, row in zip(pattern, rows):
        for j in (int(row['a']), int(row['b'])):
            while j != row['meet']:
                if j in place:
                    felt[place[j]] = True
                j = int(tied[j]['parent'])
    return pattern


def elimination_order(pattern):
    """Return (order, [COLUMN], rows) of a pattern (rows, columns): the cheapest column next, with the fill it makes.

    order: columns of the pattern.  COLUMN records count their rows from the start of `rows`, the list they share.
    """
    pattern, left, rows, steps = pattern.copy(), np.ones(len(pattern), dtype=bool), [], []
    order, rest = [], list(range(pattern.shape[1]))
    while rest:
        felt = {c: pattern[:, c] & left for c in rest}
        c = min(rest, key=lambda c: felt[c].sum() * pattern[felt[c]].any(axis=0)[rest].sum())
        fill = pattern[felt[c]].any(axis=0)
        pattern[felt[c]] |= fill
        own = np.flatnonzero(felt[c])
        steps.append((len(rows), own, fill))
        rows += own.tolist()
        left[own[0]] = False
        rest.remove(c)
        order.append(c)
    columns = np.zeros(len(order), COLUMN)
    for j, (column, (start, own, fill)) in enumerate(zip(columns, steps)):
        changed = [j, *(k for k in range(j + 1, len(order)) if fill[order[k]]), len(order)]
        gap = int(np.argmax(np.diff(changed)))
        column['row'], column['rows'] = start, len(own)
        column['near'], column['far'] = changed[gap] + 1, changed[gap + 1]
    return order, columns, rows


def eliminate(records, tied, rows):
    """Order the dependent columns of clusters in space, in TIED records; return (columns, column_rows) of `Loops`."""
    columns, column_rows = [np.zeros(0, COLUMN)], []
    for record in records:
        record['column'] = sum(map(len, columns))
        if record['planar']:
            continue
        own = rows[record['row']:record['row'] + record['rows']]
        dependent = [j for j in range(record['first'], record['first'] + record['joints'])
                     if tied[j]['independent'] < 0]
        order, steps, felt = elimination_order(row_pattern(own, tied, dependent))
        for column, c in enumerate(order):
            tied[dependent[c]]['column'], tied[dependent[c]]['pivot'] = column, felt[steps[column]['row']]
        steps['row'] += len(column_rows)
        columns.append(steps)
        column_rows += felt
    return np.concatenate(columns), np.array(column_rows, dtype=np.int64)
