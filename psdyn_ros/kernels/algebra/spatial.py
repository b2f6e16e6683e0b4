"""Spatial algebra by value: small tuples in, small tuples out.

    vector       (x, y, z)
    symmetric    (xx, xy, xz, yy, yz, zz)
    general      (xx, xy, xz, yx, yy, yz, zx, zy, zz)
    rigid        (mass, mass * com, inertia about the origin)         10 numbers
    articulated  (A, H, J): wrench f = A v + H w, m = H' v + J w       symmetric, general, symmetric

`turn_z(a, c, s)` takes a from child to parent axes when the child is turned by the angle (cos c, sin s) about
z; `turn_x` about x.  The opposite direction is the same function with -s.
"""
from ..runtime.compiler import kernel


@kernel
def add(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def sub(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def scale(k, a):
    return (k * a[0], k * a[1], k * a[2])


@kernel
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def turn_z(a, c, s):
    return (c * a[0] - s * a[1], s * a[0] + c * a[1], a[2])


@kernel
def turn_x(a, c, s):
    return (a[0], c * a[1] - s * a[2], s * a[1] + c * a[2])


@kernel
def symmetric_times(S, a):
    return (S[0] * a[0] + S[1] * a[1] + S[2] * a[2],
            S[1] * a[0] + S[3] * a[1] + S[4] * a[2],
            S[2] * a[0] + S[4] * a[1] + S[5] * a[2])


@kernel
def general_times(H, a):
    return (H[0] * a[0] + H[1] * a[1] + H[2] * a[2],
            H[3] * a[0] + H[4] * a[1] + H[5] * a[2],
            H[6] * a[0] + H[7] * a[1] + H[8] * a[2])


@kernel
def transposed_times(H, a):
    return (H[0] * a[0] + H[3] * a[1] + H[6] * a[2],
            H[1] * a[0] + H[4] * a[1] + H[7] * a[2],
            H[2] * a[0] + H[5] * a[1] + H[8] * a[2])


@kernel
def symmetric_add(S, T):
    return (S[0] + T[0], S[1] + T[1], S[2] + T[2], S[3] + T[3], S[4] + T[4], S[5] + T[5])


@kernel
def symmetric_turn_z(S, c, s):
    xx, xy, xz, yy, yz, zz = S
    r = s * (xx - yy) + 2.0 * c * xy
    return (xx - s * r, c * r - xy, c * xz - s * yz, yy + s * r, s * xz + c * yz, zz)


@kernel
def symmetric_turn_x(S, c, s):
    xx, xy, xz, yy, yz, zz = S
    r = s * (yy - zz) + 2.0 * c * yz
    return (xx, c * xy - s * xz, s * xy + c * xz, yy - s * r, c * r - yz, zz + s * r)


@kernel
def general_turn_z(H, c, s):
    xx, xy, xz, yx, yy, yz, zx, zy, zz = H
    ax, ay, az = c * xx - s * yx, c * xy - s * yy, c * xz - s * yz
    bx, by, bz = s * xx + c * yx, s * xy + c * yy, s * xz + c * yz
    return (c * ax - s * ay, s * ax + c * ay, az,
            c * bx - s * by, s * bx + c * by, bz,
            c * zx - s * zy, s * zx + c * zy, zz)


@kernel
def general_turn_x(H, c, s):
    xx, xy, xz, yx, yy, yz, zx, zy, zz = H
    bx, by, bz = c * yx - s * zx, c * yy - s * zy, c * yz - s * zz
    dx, dy, dz = s * yx + c * zx, s * yy + c * zy, s * yz + c * zz
    return (xx, c * xy - s * xz, s * xy + c * xz,
            bx, c * by - s * bz, s * by + c * bz,
            dx, c * dy - s * dz, s * dy + c * dz)


@kernel
def rigid(a):
    """Return the rigid-body inertia stored in the array `a` of 10 numbers."""
    return (a[0], (a[1], a[2], a[3]), (a[4], a[5], a[6], a[7], a[8], a[9]))


@kernel
def rigid_add(B, C):
    return (B[0] + C[0], add(B[1], C[1]), symmetric_add(B[2], C[2]))


@kernel
def rigid_turn_z(B, c, s):
    return (B[0], turn_z(B[1], c, s), symmetric_turn_z(B[2], c, s))


@kernel
def rigid_shift(B, p):
    """Return B about a point from which its present origin is at p."""
    m, h, I = B
    g = add(h, scale(m, p))
    # parallel axes: I + 2 (p.h) 1 - p h' - h p' + m (p.p 1 - p p')
    d = dot(p, h) + dot(p, g)
    return (m, g, (I[0] + d - p[0] * (h[0] + g[0]),
                   I[1] - p[0] * h[1] - p[1] * g[0],
                   I[2] - p[0] * h[2] - p[2] * g[0],
                   I[3] + d - p[1] * (h[1] + g[1]),
                   I[4] - p[1] * h[2] - p[2] * g[1],
                   I[5] + d - p[2] * (h[2] + g[2])))


@kernel
def rigid_slide_x(B, x):
    """Return B about a point from which its present origin is at (x, 0, 0)."""
    m, h, I = B
    g = h[0] + m * x
    d = x * (h[0] + g)
    return (m, (g, h[1], h[2]), (I[0], I[1] - x * h[1], I[2] - x * h[2], I[3] + d, I[4], I[5] + d))


@kernel
def rigid_slide_z(B, z):
    """Return B about a point from which its present origin is at (0, 0, z)."""
    m, h, I = B
    g = h[2] + m * z
    d = z * (h[2] + g)
    return (m, (h[0], h[1], g), (I[0] + d, I[1], I[2] - z * h[0], I[3] + d, I[4] - z * h[1], I[5]))


@kernel
def rigid_times(B, v, w):
    """Return the wrench (or momentum) B (v, w)."""
    m, h, I = B
    return add(scale(m, v), cross(w, h)), add(cross(h, v), symmetric_times(I, w))


@kernel
def rigid_bias(B, v, w):
    """Return the wrench that the body needs for its velocity alone, -ad*_nu M nu (Paz & Mattila, sec. 2)."""
    f, m = rigid_times(B, v, w)
    return cross(w, f), add(cross(w, m), cross(v, f))


@kernel
def articulated_plus_rigid(M, B):
    A, H, J = M
    m, h, I = B
    return ((A[0] + m, A[1], A[2], A[3] + m, A[4], A[5] + m),
            (H[0], H[1] + h[2], H[2] - h[1],
             H[3] - h[2], H[4], H[5] + h[0],
             H[6] + h[1], H[7] - h[0], H[8]),
            symmetric_add(J, I))


@kernel
def articulated_add(M, N):
    H, K = M[1], N[1]
    return (symmetric_add(M[0], N[0]),
            (H[0] + K[0], H[1] + K[1], H[2] + K[2], H[3] + K[3], H[4] + K[4], H[5] + K[5],
             H[6] + K[6], H[7] + K[7], H[8] + K[8]),
            symmetric_add(M[2], N[2]))


@kernel
def articulated_times(M, v, w):
    """Return the wrench M (v, w)."""
    return (add(symmetric_times(M[0], v), general_times(M[1], w)),
            add(transposed_times(M[1], v), symmetric_times(M[2], w)))


@kernel
def articulated_turn_z(M, c, s):
    return (symmetric_turn_z(M[0], c, s), general_turn_z(M[1], c, s), symmetric_turn_z(M[2], c, s))


@kernel
def articulated_turn_x(M, c, s):
    return (symmetric_turn_x(M[0], c, s), general_turn_x(M[1], c, s), symmetric_turn_x(M[2], c, s))


@kernel
def articulated_shift(M, p):
    """Return M about a point from which its present origin is at p: H - A P, J + sym(P (2 H - A P))."""
    A, H, J = M
    x, y, z = p
    K0 = H[0] - (A[1] * z - A[2] * y)
    K1 = H[1] - (A[2] * x - A[0] * z)
    K2 = H[2] - (A[0] * y - A[1] * x)
    K3 = H[3] - (A[3] * z - A[4] * y)
    K4 = H[4] - (A[4] * x - A[1] * z)
    K5 = H[5] - (A[1] * y - A[3] * x)
    K6 = H[6] - (A[4] * z - A[5] * y)
    K7 = H[7] - (A[5] * x - A[2] * z)
    K8 = H[8] - (A[2] * y - A[4] * x)
    B0, B1, B2 = H[0] + K0, H[1] + K1, H[2] + K2
    B3, B4, B5 = H[3] + K3, H[4] + K4, H[5] + K5
    B6, B7, B8 = H[6] + K6, H[7] + K7, H[8] + K8
    return (A, (K0, K1, K2, K3, K4, K5, K6, K7, K8),
            (J[0] + (y * B6 - z * B3),
             J[1] + 0.5 * (y * B7 - z * B4 + z * B0 - x * B6),
             J[2] + 0.5 * (y * B8 - z * B5 + x * B3 - y * B0),
             J[3] + (z * B1 - x * B7),
             J[4] + 0.5 * (z * B2 - x * B8 + x * B4 - y * B1),
             J[5] + (x * B5 - y * B2)))


@kernel
def articulated_less_dyad(M, f, m, k):
    """Return M - k (f, m)(f, m)'."""
    A, H, J = M
    a, b, c = k * f[0], k * f[1], k * f[2]
    d, e, g = k * m[0], k * m[1], k * m[2]
    return ((A[0] - a * f[0], A[1] - a * f[1], A[2] - a * f[2],
             A[3] - b * f[1], A[4] - b * f[2], A[5] - c * f[2]),
            (H[0] - a * m[0], H[1] - a * m[1], H[2] - a * m[2],
             H[3] - b * m[0], H[4] - b * m[1], H[5] - b * m[2],
             H[6] - c * m[0], H[7] - c * m[1], H[8] - c * m[2]),
            (J[0] - d * m[0], J[1] - d * m[1], J[2] - d * m[2],
             J[3] - e * m[1], J[4] - e * m[2], J[5] - g * m[2]))


@kernel
def pair(a):
    """Return the spatial vector stored in the array `a` of 6 numbers."""
    return (a[0], a[1], a[2]), (a[3], a[4], a[5])


@kernel
def store(a, f, m):
    """Write the spatial vector (f, m) into the array `a` of 6 numbers."""
    a[0], a[1], a[2] = f
    a[3], a[4], a[5] = m


@kernel
def accumulate(a, f, m):
    """Add the spatial vector (f, m) to the array `a` of 6 numbers."""
    a[0] += f[0]
    a[1] += f[1]
    a[2] += f[2]
    a[3] += m[0]
    a[4] += m[1]
    a[5] += m[2]


@kernel
def zero_articulated():
    return ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))


@kernel
def lateral_times(M, v):
    """Return the wrench M (v, 0) for v without z component, as every bias acceleration is."""
    A, H, _ = M
    return ((A[0] * v[0] + A[1] * v[1], A[1] * v[0] + A[3] * v[1], A[2] * v[0] + A[4] * v[1]),
            (H[0] * v[0] + H[3] * v[1], H[1] * v[0] + H[4] * v[1], H[2] * v[0] + H[5] * v[1]))


@kernel
def inertia_at(a):
    """Return the articulated inertia stored in the array `a` of 21 numbers."""
    return ((a[0], a[1], a[2], a[3], a[4], a[5]), (a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14]),
            (a[15], a[16], a[17], a[18], a[19], a[20]))


@kernel
def put_inertia(a, M):
    """Write the articulated inertia M into the array `a` of 21 numbers."""
    A, H, J = M
    a[0], a[1], a[2], a[3], a[4], a[5] = A
    a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14] = H
    a[15], a[16], a[17], a[18], a[19], a[20] = J


@kernel
def add_inertia(a, M):
    """Add the articulated inertia M to the array `a` of 21 numbers."""
    put_inertia(a, articulated_add(M, inertia_at(a)))


@kernel
def body_wrench(B, velocity, acceleration):
    """Return the wrench that a body of rigid inertia B needs for the motion in two arrays of 6 numbers."""
    v, w = pair(velocity)
    a, d = pair(acceleration)
    f, m = rigid_times(B, a, d)
    fp, mp = rigid_bias(B, v, w)
    return add(f, fp), add(m, mp)


@kernel
def kinetic_energy(B, v, w):
    """Return the kinetic energy of a rigid inertia at the twist (v, w)."""
    f, m = rigid_times(B, v, w)
    return 0.5 * (dot(v, f) + dot(w, m))


@kernel
def vector(a):
    """Return the vector stored in the array `a` of 3 numbers."""
    return (a[0], a[1], a[2])


@kernel
def cross_motion(a, b):
    """Return the twist a x b = ad_a b."""
    return add(cross(a[1], b[0]), cross(a[0], b[1])), cross(a[1], b[1])


@kernel
def cross_wrench(a, F):
    """Return the wrench a x* F by which F changes when it is displaced by the twist a."""
    return cross(a[1], F[0]), add(cross(a[1], F[1]), cross(a[0], F[0]))


@kernel
def plus(a, b):
    """Return the sum of two spatial vectors."""
    return add(a[0], b[0]), add(a[1], b[1])


@kernel
def times(k, a):
    """Return k times a spatial vector."""
    return scale(k, a[0]), scale(k, a[1])


@kernel
def product(a, b):
    """Return the product of a twist and a wrench."""
    return dot(a[0], b[0]) + dot(a[1], b[1])


@kernel
def null():
    return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


@kernel
def turned(x, y, c, s):
    """Return the axes x, y turned by the angle (cos c, sin s) about x cross y."""
    return add(scale(c, x), scale(s, y)), add(scale(-s, x), scale(c, y))


@kernel
def line(p, z):
    """Return the twist of a unit rotation about the line through p along z."""
    return cross(p, z), z


@kernel
def in_axes(x, y, z, a):
    """Return the vector with components a along the axes x, y, z."""
    return (a[0] * x[0] + a[1] * y[0] + a[2] * z[0],
            a[0] * x[1] + a[1] * y[1] + a[2] * z[1],
            a[0] * x[2] + a[1] * y[2] + a[2] * z[2])
