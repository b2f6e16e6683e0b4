"""Distance from a prediction within which Newton's method provably finds the same closed position."""
import numpy as np

TRUST_SHARE = 0.25          # of 1 / w; 2 / 3 suffices where w bounds the whole way
DIFFERENCE_STEP = 1e-6      # of finite differences [m, rad]


def convergence_distances(builder, n, table, cluster_joints):
    """Return `trust` (poses,) of cluster n for the poses of its table; zero: no hint is used.

    See `closure.provably_found`.

    cluster_joints: CLUSTER_JOINT records with the order of elimination.
    """
    poses, joints_of_cluster = table.q, cluster_joints[builder.slice(n)]
    if builder.clusters[n]['planar'] or table.linear:
        return np.zeros(len(poses))
    dependent = sorted(np.flatnonzero(joints_of_cluster['independent'] < 0),
                       key=lambda i: joints_of_cluster['column'][i])
    joints, rows = len(dependent), int(builder.clusters[n]['rows'])
    moved = np.repeat(poses[:, None], joints + 1, axis=1)
    for k, j in enumerate(dependent):
        moved[:, k + 1, j] += DIFFERENCE_STEP
    K = builder.jacobians(n, moved.reshape(-1, poses.shape[1]))[..., dependent].reshape(-1, joints + 1, rows, joints)
    curves = (K[:, 1:] - K[:, :1]) / DIFFERENCE_STEP
    Q, R = np.linalg.qr(K[:, 0])
    turned = np.linalg.solve(R[:, None], Q.swapaxes(1, 2)[:, None] @ curves).reshape(len(poses), joints, -1)
    # w: largest singular value of dK/dq as a map from joint positions to matrices, the inverse of K before it
    w = np.sqrt(np.linalg.eigvalsh(turned @ turned.swapaxes(1, 2))[:, -1])
    diagonal = abs(np.diagonal(R, axis1=1, axis2=2))
    return TRUST_SHARE / w * diagonal.max(axis=1) / diagonal.min(axis=1)
