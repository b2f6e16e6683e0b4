"""The order in which the dependent joints of a cluster are eliminated, so that those of one leg meet its rows only."""
import numpy as np

from ..kernels.loops.records import COLUMN, MIMIC, POSITION


def relate(rows, cluster_joints):
    """Set in ROW records which joint carries both of their bodies, and which share the points of the row before."""
    before = None
    for row in rows:
        paths = [[], []]
        for path, j in zip(paths, (int(row['a']), int(row['b']))):
            while j >= 0:
                path.append(j)
                j = int(cluster_joints[j]['parent'])
        row['meet'] = next((j for j in paths[0] if j in paths[1]), -1)
        same = before is not None and row['kind'] == before['kind'] == POSITION
        row['repeats'] = same and all((row[name] == before[name]).all() for name in ('a', 'b', 'pa', 'pb'))
        before = row


def row_pattern(rows, cluster_joints, dependent):
    """Return which of the `dependent` joints (rows of CLUSTER_JOINT) each ROW depends on: bool (rows, dependent)."""
    pattern = np.zeros((len(rows), len(dependent)), dtype=bool)
    place = {j: c for c, j in enumerate(dependent)}
    for depends, row in zip(pattern, rows):
        if row['kind'] == MIMIC:
            depends[[place[j] for j in (int(row['a']), int(row['b'])) if j in place]] = True
            continue
        for j in (int(row['a']), int(row['b'])):
            while j != row['meet']:
                if j in place:
                    depends[place[j]] = True
                j = int(cluster_joints[j]['parent'])
    return pattern


def elimination_order(pattern):
    """Return (order, [COLUMN], rows) of a pattern (rows, columns): the cheapest column next, with the fill it makes.

    order: columns of the pattern.  COLUMN records count their rows from the start of `rows`, the list they share.
    """
    pattern, left, rows, steps = pattern.copy(), np.ones(len(pattern), dtype=bool), [], []
    order, rest = [], list(range(pattern.shape[1]))
    while rest:
        depends = {c: pattern[:, c] & left for c in rest}
        c = min(rest, key=lambda c: depends[c].sum() * pattern[depends[c]].any(axis=0)[rest].sum())
        fill = pattern[depends[c]].any(axis=0)
        pattern[depends[c]] |= fill
        rows_of_column = np.flatnonzero(depends[c])
        steps.append((len(rows), rows_of_column, fill))
        rows += rows_of_column.tolist()
        left[rows_of_column[0]] = False
        rest.remove(c)
        order.append(c)
    columns = np.zeros(len(order), COLUMN)
    for j, (column, (start, rows_of_column, fill)) in enumerate(zip(columns, steps)):
        changed = [j, *(k for k in range(j + 1, len(order)) if fill[order[k]]), len(order)]
        gap = int(np.argmax(np.diff(changed)))
        column['row'], column['rows'] = start, len(rows_of_column)
        column['near'], column['far'] = changed[gap] + 1, changed[gap + 1]
    return order, columns, rows


def order_elimination(records, cluster_joints, rows):
    """Order the dependent columns of clusters in space, in their CLUSTER_JOINT records.

    Returns (columns, column_rows) of `Loops`.
    """
    columns, column_rows = [np.zeros(0, COLUMN)], []
    for record in records:
        record['column'] = sum(map(len, columns))
        if record['planar']:
            continue
        cluster_rows = rows[record['row']:record['row'] + record['rows']]
        dependent = [j for j in range(record['first'], record['first'] + record['joints'])
                     if cluster_joints[j]['independent'] < 0]
        order, steps, pivot_rows = elimination_order(row_pattern(cluster_rows, cluster_joints, dependent))
        for column, c in enumerate(order):
            joint = cluster_joints[dependent[c]]
            joint['column'], joint['pivot'] = column, pivot_rows[steps[column]['row']]
        steps['row'] += len(column_rows)
        columns.append(steps)
        column_rows += pivot_rows
    return np.concatenate(columns), np.array(column_rows, dtype=np.int64)
