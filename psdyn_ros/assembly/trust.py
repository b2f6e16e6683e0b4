"""How far from a prediction a closed position may be and still provably be the one that Newton's method finds there."""
import numpy as np

MARGIN = 0.25           # of 1 / w; 2 / 3 is enough where w is one over all of the way
STEP = 1e-6             # of finite differences [m, rad]


def trusted_distances(tangle, n, table, tied):
    """Return `trust` (poses,) of cluster n for the poses of its table, see `closure.certain`; zero: no hint is taken.

    tied: TIED records that tell the order of elimination.
    """
    poses, own = table.q, tied[tangle.slice(n)]
    if tangle.clusters[n]['planar'] or table.linear:
        return np.zeros(len(poses))
    dependent = sorted(np.flatnonzero(own['independent'] < 0), key=lambda i: own['column'][i])
    joints, rows = len(dependent), int(tangle.clusters[n]['rows'])
    moved = np.repeat(poses[:, None], joints + 1, axis=1)
    for k, j in enumerate(dependent):
        moved[:, k + 1, j] += STEP
    K = tangle.jacobians(n, moved.reshape(-1, poses.shape[1]))[..., dependent].reshape(-1, joints + 1, rows, joints)
    curves = (K[:, 1:] - K[:, :1]) / STEP
    Q, R = np.linalg.qr(K[:, 0])
    turned = np.linalg.solve(R[:, None], Q.swapaxes(1, 2)[:, None] @ curves).reshape(len(poses), joints, -1)
    # w: largest singular value of dK/dq as a map from joint positions to matrices, the inverse of K before it
    w = np.sqrt(np.linalg.eigvalsh(turned @ turned.swapaxes(1, 2))[:, -1])
    diagonal = abs(np.diagonal(R, axis1=1, axis2=2))
    return MARGIN / w * diagonal.max(axis=1) / diagonal.min(axis=1)
