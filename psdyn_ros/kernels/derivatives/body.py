"""One rigid body of a derivative recursion: everything in the axes of the base, about its origin.

A twist V is the sum of what the joints on the way contribute, and needs no frame of its own.  For a change of one
coordinate a body and all it carries is displaced rigidly by the screw J of that coordinate; then, with J' = dJ/dx,

    dV/dx = J x V + r        r = J' xd + V_p x J                     (the rate of J; V_p, A_p: of the parent body)
    dA/dx = J x A + r x V + a    a = A_p x J + V_p x (r + J' xd) + J' xdd + J'' xd^2

and the wrench F = I A + B V of the body and of all it carries changes by J x* F + I a + 2 B r: three sums over
bodies, I (10 numbers), 2 B (12) and F.  After J. Carpentier and N. Mansard, Analytical derivatives of rigid body
dynamics algorithms, RSS 2018; B of S. Echeandia and P. M. Wensing, J. Comput. Nonlinear Dyn. 16 (2021), here by its
blocks: for point masses at p with velocity v, 2 B (u, w) is the wrench 2 m w x v at p,

    2 B (u, w) = 2 (w x l, Theta w)      l = sum m v,  Theta = sum m (p.v 1 - v p')
"""
import numpy as np

from ..algebra.spatial import (
    add,
    cross,
    cross_motion,
    dot,
    general_times,
    in_axes,
    pair,
    plus,
    rigid_shift,
    rigid_times,
    scale,
    store,
    times,
    transposed_times,
    vector,
)
from ..runtime.compiler import kernel

BODY = np.dtype([
    ('x', 'f8', 3), ('y', 'f8', 3), ('z', 'f8', 3), ('origin', 'f8', 3),    # of the body's frame, slide included
    ('velocity', 'f8', 6), ('acceleration', 'f8', 6),
    ('J', 'f8', 6),                             # twist for unit rate of the module's coordinate
    ('slope', 'f8', 6),                         # J' = dJ/dx
    ('rate', 'f8', 6),                          # r
    ('a', 'f8', 6),
    # of the body and of all it carries
    ('mass', 'f8'), ('moment', 'f8', 3), ('inertia', 'f8', 6),
    ('momentum', 'f8', 3), ('theta', 'f8', 9),
    ('wrench', 'f8', 6),
], align=True)


@kernel
def put(a, v):
    a[0], a[1], a[2] = v


@kernel
def rigid_in_axes(x, y, z, p, a):
    """Return the rigid inertia of the array `a` of 10 numbers, in a frame with axes x, y, z at p, about the origin."""
    u = in_axes(x, y, z, (a[4], a[5], a[6]))
    v = in_axes(x, y, z, (a[5], a[7], a[8]))
    w = in_axes(x, y, z, (a[6], a[8], a[9]))
    I = (u[0] * x[0] + v[0] * y[0] + w[0] * z[0],
         u[0] * x[1] + v[0] * y[1] + w[0] * z[1],
         u[0] * x[2] + v[0] * y[2] + w[0] * z[2],
         u[1] * x[1] + v[1] * y[1] + w[1] * z[1],
         u[1] * x[2] + v[1] * y[2] + w[1] * z[2],
         u[2] * x[2] + v[2] * y[2] + w[2] * z[2])
    return rigid_shift((a[0], in_axes(x, y, z, (a[1], a[2], a[3])), I), p)


@kernel
def coriolis(B, V):
    """Return momentum l and Theta of a rigid inertia that moves at V = (v, w).

    Theta = v.h 1 - v h' - [w] E with E = tr(I) / 2 1 - I, the second moments of mass about the origin.
    """
    m, h, I = B
    v, w = V
    x, y, z = w
    e = 0.5 * (I[0] + I[3] + I[5])
    xx, xy, xz, yy, yz, zz = e - I[0], -I[1], -I[2], e - I[3], -I[4], e - I[5]
    d = dot(v, h)
    return add(scale(m, v), cross(w, h)), (
        d - v[0] * h[0] + z * xy - y * xz, z * yy - y * yz - v[0] * h[1], z * yz - y * zz - v[0] * h[2],
        x * xz - z * xx - v[1] * h[0], d - v[1] * h[1] - z * xy + x * yz, x * zz - z * xz - v[1] * h[2],
        y * xx - x * xy - v[2] * h[0], y * xy - x * yy - v[2] * h[1], d - v[2] * h[2] + y * xz - x * yz)


@kernel
def coriolis_times(l, theta, w):
    """Return 2 B (u, w), for any u."""
    w = scale(2.0, w)
    return cross(w, l), general_times(theta, w)


@kernel
def coriolis_transposed(l, theta, J):
    """Return q with J' 2 B (u, w) = q . w."""
    return scale(2.0, add(cross(l, J[0]), transposed_times(theta, J[1])))


@kernel
def place_body(r, x, y, z, origin):
    """Store the frame of body r."""
    put(r['x'], x)
    put(r['y'], y)
    put(r['z'], z)
    put(r['origin'], origin)


@kernel
def move_body(r, V, A, J, xd, xdd):
    """Store the motion of body r on a parent body at (V, A), J fixed in the parent; return its own (V, A)."""
    rate = cross_motion(V, J)
    store(r['J'], J[0], J[1])
    store(r['rate'], rate[0], rate[1])
    a = plus(cross_motion(A, J), cross_motion(V, rate))
    store(r['a'], a[0], a[1])
    V = plus(V, times(xd, J))
    A = plus(A, plus(times(xdd, J), times(xd, rate)))
    store(r['velocity'], V[0], V[1])
    store(r['acceleration'], A[0], A[1])
    return V, A


@kernel
def move_curved_body(r, V, A, J, slope, curvature, xd, xdd):
    """The same where J depends on x: slope = dJ/dx, curvature = d2J/dx2."""
    still = cross_motion(V, J)
    slope_rate = times(xd, slope)
    rate = plus(slope_rate, still)
    store(r['J'], J[0], J[1])
    store(r['slope'], slope[0], slope[1])
    store(r['rate'], rate[0], rate[1])
    a = plus(cross_motion(A, J), cross_motion(V, plus(rate, slope_rate)))
    a = plus(a, plus(times(xdd, slope), times(xd * xd, curvature)))
    store(r['a'], a[0], a[1])
    V = plus(V, times(xd, J))
    A = plus(A, plus(times(xdd, J), times(xd, rate)))
    store(r['velocity'], V[0], V[1])
    store(r['acceleration'], A[0], A[1])
    return V, A


@kernel
def load_body(r, x, y, z, origin, parameters, V, A):
    """Store the sums of body r for itself: inertia, momentum, Theta, and the wrench I A + B V."""
    B = rigid_in_axes(x, y, z, origin, parameters)
    m, h, I = B
    l, theta = coriolis(B, V)
    f, t = rigid_times(B, A[0], A[1])
    f, t = add(f, cross(V[1], l)), add(t, general_times(theta, V[1]))
    r['mass'] = m
    put(r['moment'], h)
    put(r['momentum'], l)
    store(r['inertia'], (I[0], I[1], I[2]), (I[3], I[4], I[5]))
    for i in range(9):
        r['theta'][i] = theta[i]
    store(r['wrench'], f, t)


@kernel
def sums(r):
    """Return (rigid inertia, l, Theta, wrench) of body r and of all it carries so far."""
    I, T = r['inertia'], r['theta']
    return ((r['mass'], vector(r['moment']), (I[0], I[1], I[2], I[3], I[4], I[5])), vector(r['momentum']),
            (T[0], T[1], T[2], T[3], T[4], T[5], T[6], T[7], T[8]), pair(r['wrench']))


@kernel
def carry(r, s):
    """Add the sums of body s to those of the body r that carries it."""
    r['mass'] += s['mass']
    for i in range(3):
        r['moment'][i] += s['moment'][i]
        r['momentum'][i] += s['momentum'][i]
    for i in range(6):
        r['inertia'][i] += s['inertia'][i]
        r['wrench'][i] += s['wrench'][i]
    for i in range(9):
        r['theta'][i] += s['theta'][i]
