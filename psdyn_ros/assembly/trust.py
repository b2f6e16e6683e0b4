"""How far from a prediction a closed position may be and still provably be the one that Newton's method finds there."""
import numpy as np

MARGIN = 0.25           # of 1 / w; 2 / 3 is enough where w is one over all of the way
STEP = 1e-6             # of finite differences [m, rad]


def trusted_distances(tangle, n, poses, dependent):
    """Return `trust` (poses,) of cluster n for closed poses (poses, joints), see `closure.certain`.

    dependent: the dependent joints, counted from the first of the cluster, in the order of their elimination.
    """
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
