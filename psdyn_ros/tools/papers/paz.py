"""
A. Paz, J. Mattila, "Analytical forward dynamics modeling of linearly actuated heavy-duty parallel-serial manipulators".

The paper's Figs. 3 and 4: positions over 10 s, the round trip FD(ID(xdd)) - xdd, and the difference to another engine.
"""
from typing import NamedTuple

import numpy as np

from ...api.load import load
from ...formulations import denoc, legs, paz_mattila
from ...formulations.titop import Network, Prismatic, Revolute, Weld
from .findings import DATA, PAPER, REFERENCE, stored
from .plotting import BLACK, label

TITLE = 'Paz & Mattila: linearly actuated parallel-serial manipulators'
TIMES = np.linspace(0, 10, 501)
TURN = 2 * np.pi / 10
PARALLEL = np.eye(3)


class Example(NamedTuple):
    """A machine of the paper, with what it left out made up, and its motion of 10 s."""

    name: str
    figure: str
    gravity: tuple
    centre: tuple
    amplitude: tuple
    rate: tuple
    units: tuple
    joints: tuple
    reported: tuple
    """Of the paper: mean error of the round trip and against Simscape, then both in per cent, then their mean |xdd|."""

    def motion(self, t):
        """Return x, xd, xdd (..., n) at times t (...)."""
        t = np.asarray(t)[..., None]
        amplitude, w = np.array(self.amplitude), TURN * np.array(self.rate)
        return (self.centre + amplitude * np.sin(w * t), amplitude * w * np.cos(w * t),
                -amplitude * w * w * np.sin(w * t))


ONE = Example('paz_one_loop_415kg', 'fig3', (-9.81, 0.0, 0.0), (0.25,), (0.025,), (1,), ('m',), ('cylinder',),
              (7.66e-16, 1.20e-6, 1.25e-11, 0.02, 6.1e-3))
FOUR = Example('paz_four_dof_1063kg', 'fig4', (0.0, 0.0, -9.81), (0.0, 0.25, 0.25, 0.5), (0.3, 0.05, 0.05, 0.1),
               (1, 1, 2, 2), ('rad', 'm', 'm', 'm'), ('slew', 'lift cylinder', 'tilt cylinder', 'telescope'),
               (5.21e-14, 9.59e-5, 2.42e-11, 0.04, 0.23))


def module_of(record):
    """Return the module of `formulations.paz_mattila` of a record of the files."""
    value = {key: np.array(entry) for key, entry in record.items() if key != 'type'}
    if record['type'] == 'ser':
        return paz_mattila.SerialModule(value['s'], value['TJ'], value['TE'], value['M0'], value['M4'], value['ME'])
    lengths = (record[key] for key in ('L', 'L1', 'Lc', 'Lc0'))
    return paz_mattila.LoopModule(*lengths, *(value[key] for key in ('TB1', 'TB3', 'TE', 'M0', 'M1', 'M3', 'M4', 'ME')))


def modules_of(example):
    return [module_of(record) for record in stored(example.name)['parameters']]


def recursion(example):
    """Return the `Manipulator` of the example's URDF, which was written from the same numbers."""
    return load(str(DATA / f'{example.name}.urdf'), gravity=example.gravity)


# --- witnesses


def split(M):
    """Return mass, centre (3,) and inertia (3, 3) about the centre of a spatial inertia (6, 6)."""
    mass = M[0, 0]
    if not mass:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    c = np.array((M[5, 1], M[3, 2], M[4, 0])) / mass
    return mass, c, M[3:, 3:] - mass * (c @ c * np.eye(3) - np.outer(c, c))


def titop_tree(modules, gravity):
    """Return the TITOP `System` of the joints of a chain with its loops left open, on a driven base."""
    network, carrier = Network(), None

    def at(**poses):
        return {port: pose[:3, 3] for port, pose in poses.items()}

    def hang(kind, name, carrier, M, ports, axis=(), orientation=PARALLEL):
        mass, c, I_c = split(M)
        network.add(kind(name, *axis, mass, I_c, c, ports, orientation[:3, :3]))
        if carrier:
            network.connect(f'{name}.P', carrier)
    for k, module in enumerate(modules, 1):
        base, end = f'base{k}', f'end{k}'
        if isinstance(module, paz_mattila.SerialModule):
            linear, angular = np.split(module.s, 2)
            kind, axis = (Revolute, angular) if angular.any() else (Prismatic, linear)
            hang(Weld, base, carrier, module.M_B0, at(joint=module.T_B4))
            hang(kind, f'x{k}', f'{base}.joint', module.M_B4, at(E=module.T_E), (axis,), module.T_B4)
            carrier = f'x{k}.E'
        else:
            z, rod = ((0, 0, 1),), {'rod': (module.Lc0, 0, 0)}
            hang(Weld, base, carrier, module.M_B0, at(boom=module.T_B1, barrel=module.T_B3))
            hang(Revolute, f'barrel{k}', f'{base}.barrel', module.M_B3, rod, z, module.T_B3)
            hang(Prismatic, f'x{k}', f'barrel{k}.rod', module.M_B4, {}, ((1, 0, 0),))
            hang(Revolute, f'boom{k}', f'{base}.boom', module.M_B1, at(E=module.T_E), z, module.T_B1)
            carrier = f'boom{k}.E'
        hang(Weld, end, carrier, module.M_E, {'next': (0, 0, 0)}, (), module.T_E)
        carrier = f'{end}.next'
    network.expose(carrier)
    return network.assemble(gravity)


def titop_forces(modules, system, x, xd, xdd):
    """Return f (n,): forces of the open tree's joints along the loops' motion, put together by virtual work."""
    q, qd, qdd, on_f = {}, {}, {}, {}
    for k, (module, *state) in enumerate(zip(modules, x, xd, xdd), 1):
        joints, slopes, rates = (f'x{k}',), (1.0,), (0.0,)
        q[f'x{k}'] = state[0]
        if isinstance(module, paz_mattila.LoopModule):
            k1, k2, _, k4, k5, _ = module.ratios(*state[:2])
            joints, slopes, rates = (f'x{k}', f'boom{k}', f'barrel{k}'), (1.0, k1, k2), (0.0, k4, k5)
            q[f'boom{k}'], q[f'barrel{k}'], _ = module.angles(state[0])
        for joint, slope, rate in zip(joints, slopes, rates):
            qd[joint], qdd[joint], on_f[joint] = slope * state[1], slope * state[2] + rate, (k - 1, slope)
    solution = system.solve(system.state(joint_positions=q, joint_rates=qd), accelerations=qdd,
                            base_acceleration=np.zeros(6))
    f = np.zeros(len(modules))
    for joint, force in zip(system.joints, solution.joint_forces):
        k, slope = on_f[joint]
        f[k] += slope * force
    return f


def one_leg(module, gravity):
    """
    Return a loop on the ground as a `Mechanism` of one leg that ends there.

    Its joints are barrel pin, stroke (actuated), rod eye and boom pin; the moving link has its origin at the eye.
    """
    z = np.array((0.0, 0.0, 1.0))

    def link(offset, axis, M, origin=(0.0, 0.0, 0.0), prismatic=False):
        mass, c, I_c = split(M)
        return legs.Link(np.asarray(offset, float), np.asarray(axis, float), mass, c - origin, I_c, prismatic)
    T = module.T_E[:3, 3]
    to_E = np.eye(6)
    to_E[:3, 3:] = -paz_mattila.hat(T)
    carried = module.M_B1 + to_E.T @ module.M_E @ to_E
    links = (link(module.T_B3[:3, 3], z, module.M_B3),
             link((module.Lc0, 0, 0), (1, 0, 0), module.M_B4, prismatic=True),
             link((module.Lc, 0, 0), z, carried, (module.L1, 0, 0)),
             link((-module.L1, 0, 0), z, np.zeros((6, 6))))
    return legs.Mechanism((legs.Leg(links, 2, np.zeros(3), np.eye(3)),), np.array(gravity), module.T_B1)


def denoc_round(module, gravity, x, xd, xdd):
    """Return f and FD(f) of one loop by the DeNOC recursion, each (1,)."""
    mechanism = one_leg(module, gravity)
    q, q1, q2 = module.angles(x[0])
    configuration = denoc.configure(mechanism, legs.close(mechanism, ((q1, x[0], q2, -q),)))
    f = denoc.inverse_dynamics(configuration, xd, xdd)
    return f, denoc.forward_dynamics(configuration, xd, f)


# --- steps


def check_values(findings):
    """The forces and accelerations of the stored files, at 21 instants each, and some of them by name."""
    for example, instants in ((ONE, (0.0, 2.5, 7.5)), (FOUR, (0.0, 1.0, 3.0))):
        data, modules, machine = stored(example.name), modules_of(example), recursion(example)
        nudot_0 = -np.array((*example.gravity, 0, 0, 0))
        kind = 'one loop' if example is ONE else 'four DoF'
        file = {row['t']: row['f'] for row in data['trajectory_inverse_dynamics']}
        for t in instants:
            x, xd, xdd = example.motion(t)
            findings.equal('checks', f'{kind}, force at {t:g} s [{"N" if example is ONE else "N m, N, N, N"}]',
                           machine.inverse_dynamics(x, xd, xdd), file[t], bound=3e-6)
        rows = data['trajectory_inverse_dynamics']
        worst = {'recursion': 0.0, 'as printed': 0.0}
        for row in rows:
            state = row['x'], row['xd'], row['xdd']
            for name, f in (('recursion', machine.inverse_dynamics(*state)),
                            ('as printed', paz_mattila.inverse_dynamics(modules, *state, nudot_0).f)):
                worst[name] = max(worst[name], np.abs(f - row['f']).max() / (1 + np.abs(row['f']).max()))
        for name, value in worst.items():
            findings.below('checks', f'{kind}, {name}: worst force of {len(rows)} instants, relative', value, 1e-10)
        worst = dict.fromkeys(worst, 0.0)
        for row in data['forward_dynamics']:
            state = row['x'], row['xd'], row['f']
            for name, xdd in (('recursion', machine.forward_dynamics(*state)),
                              ('as printed', paz_mattila.forward_dynamics(modules, *state, nudot_0).xdd)):
                worst[name] = max(worst[name], np.abs(xdd - row['xdd']).max() / (1 + np.abs(row['xdd']).max()))
        for name, value in worst.items():
            findings.below('checks', f'{kind}, {name}: worst acceleration of {len(data["forward_dynamics"])} '
                           'instants against the dense KKT solution, relative', value, 1e-13)
    at_rest = {tuple(row['f']): row['xdd'] for row in stored(ONE.name)['forward_dynamics'] if row['t'] == 0}
    x, xd, _ = ONE.motion(0.0)
    for f, ref in at_rest.items():
        if f[0] in (0, 1000):
            findings.equal('checks', f'one loop, acceleration at 0 s under {f[0]:g} N [m/s^2]',
                           recursion(ONE).forward_dynamics(x, xd, f), ref, form='.8f')


def quantities_of_the_loop(findings):
    """What the recursion computes on its way, at t = 1 s."""
    ref = stored(ONE.name)['intermediate_t1']['f=5000']
    nudot_0 = -np.array((*ONE.gravity, 0, 0, 0))
    comp = paz_mattila.forward_dynamics(modules_of(ONE), ref['x'], ref['xd'], [5000.0], nudot_0)
    (kin,), (art,) = comp.kinematics, comp.articulated
    for name, value, key, form in (('q, q1, q2 [rad]', kin.angles, 'q_q1_q2', '.9f'),
                                   ('k1, k2, k3 [1/m]', kin.k[:3], 'k1_to_k6', '.9f'),
                                   ('k4, k5, k6 [1/s^2]', kin.k[3:], 'k1_to_k6', '.6e'),
                                   ('alpha [kg]', art.alpha, 'alpha', '.6f'), ('psi [kg, kg m]', art.psi, 'psi', '.6f'),
                                   ('delta [N]', art.delta, 'delta', '.6f'),
                                   ('xdd under 5000 N [m/s^2]', comp.xdd, 'xdd', '.8f')):
        wanted = np.atleast_1d(ref[key])
        wanted = wanted[3:] if name.startswith('k4') else wanted[:np.size(value)]
        findings.equal('loop', name, value, wanted, form=form, bound=1e-9 if form == '.9f' else 1e-8)


def internal_wrenches(findings):
    """f4y with the sign as printed and corrected; the out-of-plane wrench that assumption (56) leaves out."""
    modules, nudot_0 = modules_of(ONE), -np.array((*ONE.gravity, 0, 0, 0))
    x, xd, xdd = ONE.motion(1.0)
    inverse = paz_mattila.inverse_dynamics(modules, x, xd, xdd, nudot_0)
    (module,), (kin,), (wrench,) = modules, inverse.kinematics, inverse.wrenches
    statics = _planar_statics(module, kin, x[0], xdd[0], nudot_0)
    printed = kin.K_bar.copy()
    printed[1, 8] *= -1
    f4y = printed[1] @ _planar_wrenches(module, kin, xdd[0], nudot_0)
    findings.equal('wrenches', 'one loop at 1 s, f4y from K4bar with -1/ke [N]', wrench.F_B4[1], statics[3], form='.4f',
                   bound=1e-8)
    findings.differs('wrenches', 'one loop at 1 s, f4y from K4bar with +1/ke as printed [N]', f4y, statics[3],
                     form='.4f', source=REFERENCE)
    findings.equal('wrenches', 'one loop at 1 s, f4x, the actuator force [N]', wrench.f, statics[2], form='.4f',
                   bound=1e-8)
    x, xd, xdd = FOUR.motion(1.0)
    four = paz_mattila.inverse_dynamics(modules_of(FOUR), x, xd, xdd, -np.array((*FOUR.gravity, 0, 0, 0)))
    lift, tilt = (wrench for wrench in four.wrenches if isinstance(wrench, paz_mattila.LoopWrenches))
    for name, loop, ref in (('lift', lift, (85.74, -190.84, -55.70)), ('tilt', tilt, (62.70, 33.18, -57.88))):
        findings.equal('wrenches', f'four DoF at 1 s, {name} loop: fz, mx, my on its base [N, N m, N m]',
                       loop.F_Bc[2:5], ref, form='.2f')


def _planar_wrenches(module, kin, xdd, nudot_0):
    """(fx, fy, mz) of F~_B1, F^_B3, F^_B4, (9,)."""
    nudot_B1, nudot_B3, nudot_B4, nudot_E = module.accelerations(kin, xdd, nudot_0)
    p_B1, p_B3, p_B4 = kin.p
    F = (module.M_B1 @ nudot_B1 + p_B1 + kin.Ad_E.T @ (module.M_E @ nudot_E + kin.p_E),
         module.M_B3 @ nudot_B3 + p_B3, module.M_B4 @ nudot_B4 + p_B4)
    return (np.array(F) @ paz_mattila.XI.T).ravel()


def _planar_statics(module, kin, x, xdd, nudot_0):
    """Unknowns [fPx fPy f4x f4y m4z f3x f3y] of the 7 x 7 system, the last two right-hand sides corrected."""
    _, _, m1, fx3, fy3, m3, fx4, fy4, m4 = _planar_wrenches(module, kin, xdd, nudot_0)
    return np.linalg.solve(module.statics_matrix(x), (m1, -fx4, -fy4, -m4, -m3, -fx3, -fy3))


def errors_of(example):
    """Return {engine: (times,) error of xdd, summed over the joints} along the motion, and the motion (3, times, n)."""
    modules, machine = modules_of(example), recursion(example)
    nudot_0, system = -np.array((*example.gravity, 0, 0, 0)), titop_tree(modules, example.gravity)
    motion = example.motion(TIMES)
    errors = {'round trip, recursion': [], 'round trip, as printed': [], 'recursion - as printed': [],
              'recursion - TITOP': []}
    if example is ONE:
        errors |= {'round trip, DeNOC': [], 'recursion - DeNOC': []}
    for x, xd, xdd in zip(*motion):
        def error(comp, xdd=xdd):
            return np.abs(comp - xdd).sum()

        def by_recursion(f, x=x, xd=xd):
            return machine.forward_dynamics(x, xd, f)
        printed = paz_mattila.inverse_dynamics(modules, x, xd, xdd, nudot_0).f
        row = {'round trip, recursion': error(by_recursion(machine.inverse_dynamics(x, xd, xdd))),
               'round trip, as printed': error(paz_mattila.forward_dynamics(modules, x, xd, printed, nudot_0).xdd),
               'recursion - as printed': error(by_recursion(printed)),
               'recursion - TITOP': error(by_recursion(titop_forces(modules, system, x, xd, xdd)))}
        if example is ONE:
            f, back = denoc_round(modules[0], example.gravity, x, xd, xdd)
            row |= {'round trip, DeNOC': error(back), 'recursion - DeNOC': error(by_recursion(f))}
        for name, value in row.items():
            errors[name].append(value)
    return {name: np.array(values) for name, values in errors.items()}, motion


def figures_3_and_4(findings):
    for example, kind in ((ONE, '1 DoF'), (FOUR, '4 DoF')):
        errors, motion = errors_of(example)
        round_trip, simscape, round_percent, simscape_percent, paper_mean = example.reported
        mean = np.abs(motion[2]).sum(axis=1).mean()
        findings.differs('errors', f'{kind}, mean sum of |xdd| over 10 s', mean, paper_mean, form='.4g', source=PAPER)
        for name, values in errors.items():
            back = name.startswith('round')
            findings.below('errors', f'{kind}, {name}: mean error', values.mean(), 1e-12,
                           reference=round_trip if back else simscape, source=PAPER)
            findings.below('errors', f'{kind}, {name}: mean error [%]', 100 * values.mean() / mean, 1e-8,
                           reference=round_percent if back else simscape_percent, source=PAPER)
        _plot(findings, example, errors, motion[0])


def _plot(findings, example, errors, x):
    number = example.figure[-1]
    axes = findings.plate(
        f'paz_{example.figure}', f'Paz & Mattila, Fig. {number}: (a) positions, (b) round trip FD(ID), (c) recursion '
        'against other engines, where the paper has Simscape', 3, 1, (8, 8.5))[:, 0]
    for values, unit, joint in zip(x.T, example.units, example.joints):
        axes[0].plot(TIMES, values, label=f'{joint} [{unit}]')
    label(axes[0], '(a) position x [m, rad]' if len(x.T) > 1 else '(a) stroke x [m]')
    words_of_error = '|error of xdd| [m/s^2]' if example is ONE else 'sum of |error of xdd|\n[m/s^2, rad/s^2]'
    _, simscape, _, _, _ = example.reported
    for row, start, paper, words in ((axes[1], 'round trip, ', example.reported[0], 'paper, mean'),
                                     (axes[2], 'recursion - ', simscape, 'paper against Simscape, mean')):
        for name, values in errors.items():
            if name.startswith(start):
                # a difference of exactly zero has no place on a logarithmic scale
                row.semilogy(TIMES, np.where(values > 0, values, np.nan), '.', markersize=2.5,
                             label=name.removeprefix(start))
        row.axhline(paper, color=BLACK, linewidth=1, linestyle='--', label=words)
        label(row, f'({"b" if row is axes[1] else "c"}) {words_of_error}')
    axes[-1].set_xlabel('time [s]')


def the_crane(findings):
    """The laboratory's own crane, whose data came out later and sum up to the weights of the paper."""
    for name, weight in (('hiab_xs031_lift', 415.0), ('hiab_xs031', 1063.0)):
        machine = load(name)
        limits = machine.limits
        lower, upper = limits.lower, limits.upper
        t = TIMES[:, None]
        rate = TURN * np.array((1, 1, 2, 2))[:machine.dof]
        centre, amplitude = (lower + upper) / 2, 0.1 * (upper - lower)
        motion = (centre + amplitude * np.sin(rate * t), amplitude * rate * np.cos(rate * t),
                  -amplitude * rate**2 * np.sin(rate * t))
        back = machine.forward_dynamics(*motion[:2], machine.inverse_dynamics(*motion))
        reported = (ONE if machine.dof == 1 else FOUR).reported[0]
        findings.equal('crane', f'{name}: mass [kg]', machine.total_mass, weight, form='.0f', source=PAPER)
        findings.below('crane', f'{name}: round trip, mean error', np.abs(back - motion[2]).sum(axis=1).mean(), 1e-11,
                       reference=reported, source=PAPER)


STEPS = (('check values', check_values, False), ('quantities of the loop', quantities_of_the_loop, False),
         ('internal wrenches', internal_wrenches, False), ('Figs. 3 and 4', figures_3_and_4, True),
         ('the crane', the_crane, False))
