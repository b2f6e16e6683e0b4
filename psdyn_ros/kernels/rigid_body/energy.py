"""Kinetic energy and first moment of mass."""
from ..runtime.compiler import kernel
from .joints import kinetic_energy_of, moment_of
from .tree import moment_at_parent


@kernel
def energy(m, out):
    """Write kinetic energy [J] and first moment of mass about the base origin, base axes [kg m], into out (4,).

    The machine is placed. The base body is not in them where it does not float.
    """
    out[0], out[1], out[2], out[3] = 0.0, 0.0, 0.0, 0.0
    for k in range(m.modules.shape[0]):
        out[0] += kinetic_energy_of(m, k)
    # rows of wrenches carry (m c, m) of each body and what stands on it, tips to base
    for k in range(m.modules.shape[0] - 1, -1, -1):
        b = m.modules[k]
        h, mass = moment_of(m, k)
        h = moment_at_parent(m, k, h, mass)
        if b['parent'] < 0:
            out[1] += h[0]
            out[2] += h[1]
            out[3] += h[2]
            continue
        a = m.work[b['parent']]['wrench'][b['parent_body']]
        a[0] += h[0]
        a[1] += h[1]
        a[2] += h[2]
        a[3] += mass
