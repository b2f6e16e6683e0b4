"""Forces on an axis besides its drive: friction, end stops and brake, and their slopes for the implicit step.

Slopes are the *steepest* that the predictor [v, v + h a] crosses.  A Rosenbrock-W step keeps its order for any slopes,
and with these it neither chatters at rest nor overshoots where friction turns round, though it sees only two points.
"""
import math

from ..rigid_body.friction import stop_force
from ..runtime.compiler import kernel, python_kernel
from .records import MEASURED_FORCE


@kernel
def nearest_zero(a, b):
    """Return the point between a and b, in any order, that is nearest to zero."""
    if a * b <= 0.0:
        return 0.0
    return a if abs(a) < abs(b) else b


@kernel
def fading(b, v):
    """Return exp(-(v / v_st)^2), the share of the Stribeck effect at a velocity; 0 without the effect."""
    if b['stribeck_velocity'] > 0.0:
        ratio = v / b['stribeck_velocity']
        return math.exp(-ratio * ratio)
    return 0.0


@python_kernel
def sliding_friction(b, v):
    """Return the regularised Stribeck friction, F_c tanh(v / slip) + (F_s - F_c) exp(-(v / v_st)^2) tanh + b v."""
    level = b['coulomb']
    if b['stribeck'] != 0.0:
        level += b['stribeck'] * fading(b, v)
    return level * math.tanh(v / b['slip']) + b['viscous'] * v


@python_kernel
def sliding_friction_slope(b, v):
    """Return its derivative by v."""
    t = math.tanh(v / b['slip'])
    level, falling = b['coulomb'], 0.0
    if b['stribeck'] != 0.0 and b['stribeck_velocity'] > 0.0:
        left = b['stribeck'] * fading(b, v)
        level += left
        falling = 2.0 * v / (b['stribeck_velocity'] * b['stribeck_velocity']) * left * t
    return level * (1.0 - t * t) / b['slip'] - falling + b['viscous']


@kernel
def bristle_terms(b, v):
    """Return (rho, sigma_1) of LuGre friction: z' = v - rho z, F = sigma_0 z + sigma_1 z' + b v."""
    level = b['coulomb'] + b['stribeck'] * fading(b, v)
    rho = b['bristle'] * abs(v) / level if level > 0.0 else 0.0
    damping = b['bristle_damping']
    if b['stribeck_velocity'] > 0.0:
        damping *= fading(b, v)
    return rho, damping


@python_kernel
def friction_of(b, v, z):
    """Return (friction, rate of the bristle) of an axis at velocity v with bristle z [m]; friction opposes v.

    A force that was measured on a real cylinder has its friction in it.
    """
    if b['drive'] == MEASURED_FORCE:
        return 0.0, 0.0
    if b['bristle'] > 0.0:
        rho, damping = bristle_terms(b, v)
        rate = v - rho * z
        return b['bristle'] * z + damping * rate + b['viscous'] * v, rate
    return sliding_friction(b, v), 0.0


@python_kernel
def holding_force(b, q, v):
    """Return the force of end stops and brake on an axis at position q."""
    force = stop_force(b['lower'] - q, -v, b['stop_stiffness'], b['stop_damping'])
    force -= stop_force(q - b['upper'], v, b['stop_stiffness'], b['stop_damping'])
    if b['braked']:
        force += b['brake_force'] - b['brake_stiffness'] * (q - b['brake_position']) - b['brake_damping'] * v
    return force


@kernel
def slides(b):
    """Return whether an axis has regularised friction of its own."""
    return b['bristle'] == 0.0 and b['drive'] != MEASURED_FORCE


@python_kernel
def sliding_slope(b, v, h, a, a_far):
    """Return the slope of regularised friction for a step h from v with acceleration a.

    a_far: what is left of the acceleration where friction is that of v + h a.  If the motion then goes on, the slope is
    the chord to where it ends.  If not, friction catches it on the way: the steepest slope that is crossed, but no
    more than stops the motion at zero, lest one far from it is frozen.
    """
    ahead = v + h * a
    if a * a_far > 0.0:
        end = a_far * (h + v / a) if v * ahead < 0.0 else ahead
        if end != v:
            return max(0.0, (sliding_friction(b, end) - sliding_friction(b, v)) / (end - v))
    steepest = sliding_friction_slope(b, nearest_zero(v, ahead))
    if abs(v) > b['slip']:
        stopping = (b['coulomb'] + b['stribeck'] + abs(sliding_friction(b, v))) / abs(v)
        steepest = min(steepest, stopping)
    return max(0.0, steepest)


@kernel
def friction_slopes(b, v, h, a, a_far, z):
    """Return (d, rho, theta, sigma) for a step h from velocity v, bristle z: resistance to a change of velocity.

    d is the slope of friction by v; of LuGre friction z' = theta dv - rho dz and sigma dz comes on top.
    """
    if slides(b):
        return sliding_slope(b, v, h, a, a_far), 0.0, 0.0, 0.0
    if b['drive'] == MEASURED_FORCE:
        return 0.0, 0.0, 0.0, 0.0
    rho, damping = bristle_terms(b, v)
    # a fully bent bristle does not follow until the motion reverses
    theta = 1.0
    if v * (v + h * a) > 0.0:
        theta = min(1.0, max(0.0, 1.0 - rho * z / v))
    return damping * theta + b['viscous'], rho, theta, max(0.0, b['bristle'] - damping * rho)


@python_kernel
def holding_slopes(b, q, v, q_ahead, v_ahead):
    """Return stiffness and damping (k, d) of end stops and brake on the way to the predicted state."""
    k, d = 0.0, 0.0
    depth = max(b['lower'] - min(q, q_ahead), max(q, q_ahead) - b['upper'])
    if depth > 0.0:
        # at the lower stop the rate has the other sign
        rate = max(v, v_ahead) if max(q, q_ahead) > b['upper'] else max(-v, -v_ahead)
        k = b['stop_stiffness'] * max(0.0, 1.0 + b['stop_damping'] * rate)
        d = b['stop_stiffness'] * b['stop_damping'] * depth
    if b['braked']:
        k += b['brake_stiffness']
        d += b['brake_damping']
    return k, d
