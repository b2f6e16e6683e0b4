"""Mass matrix, and the map from rates of the coordinates to those of the actuators."""
from ..runtime.compiler import inner, kernel
from ..runtime.status import OK
from .cluster_joint import in_cluster, map_actuators, project_efforts
from .inverse import wrenches_of_machine
from .joints import put_joint_effort
from .mechanism import bind, columns_of


@inner
def mass_matrix(tree, loops, x, M):
    """Write M (dof, dof) of a machine whose clusters are closed at x; return a status.

    Column j is the effort for unit acceleration of coordinate j at rest without gravity.
    """
    m, n = bind(tree, loops), M.shape[0]
    columns = columns_of(tree)[0]
    zero, unit, column = columns[0], columns[1], columns[2]
    for j in range(n):
        unit[j] = 1.0
        status = wrenches_of_machine(tree, loops, True, x, zero, unit)
        unit[j] = 0.0
        if status != OK:
            return status
        for k in range(m.modules.shape[0]):
            put_joint_effort(m, k, column)
        project_efforts(m.loops, m, column)
        for i in range(j, n):
            M[i, j] = column[i]
            M[j, i] = column[i]
    return OK


@kernel
def actuator_map(m, A):
    """Write A (actuators, dof) with the rates A xd of the actuators; the clusters are closed."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0.0
    for k in range(m.modules.shape[0]):
        b = m.modules[k]
        if b['actuator'] >= 0 and not in_cluster(m.loops, b):
            A[b['actuator'], b['coordinate']] = 1.0
    map_actuators(m.loops, m, A)
