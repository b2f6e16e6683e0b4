"""The machines of urdf/ by `psdyn_ros.load`, beside the same numbers: the recursion without any formulation."""
import numpy as np
from scipy.integrate import solve_ivp

from ...api.load import load
from ...formulations import denoc, noc
from ...formulations.titop.dual_vectors import quaternion_rate, rotation_of
from ...model.locate import find_config
from ...simulation.external_forces import ExternalForces
from .alazard import outputs, row_outputs
from .bars import FIVE_BAR_ENDS, FIVE_BAR_MODES, FOUR_BAR_ENDS, FOUR_BAR_MODES, T, case, whole_turns_off
from .findings import stored

TITLE = 'The machines of urdf/ by psdyn_ros.load'
BOUND = 1e-12
# joint -> initial position that picks the second assembly mode
FOUR_BAR_INITIAL = {'open': {}, 'crossed': {'coupler': -1.3648281656841457, 'rocker': 2.288972884144962}}
FIVE_BAR_INITIAL = {'above': {}, 'below': {'elbow_1': -1.1504558472410755, 'elbow_2': -2.6118557488308576}}
TIGHT = {'method': 'DOP853', 'rtol': 1e-11, 'atol': 1e-12}


def _joints(machine, x, xd, xdd):
    """Return {joint: (position, rate, acceleration)}."""
    names, *values = machine.joint_state(x, xd, xdd)
    return dict(zip(names, np.transpose(values)))


def _worse(worst, name, comp, ref):
    worst[name] = max(worst.get(name, 0.0), np.abs(np.subtract(comp, ref)).max())


def four_bar(findings):
    for mode in FOUR_BAR_MODES:
        machine, worst = load('four_bar', initial=FOUR_BAR_INITIAL[mode]), {}
        rows = case('four_bar', mode)['inverse_dynamics']
        for row in rows:
            path = denoc.trajectory(row['t'], T, *FOUR_BAR_ENDS)
            _worse(worst, 'crank torque [N m]', machine.inverse_dynamics(*path), row['tau1'])
            _worse(worst, 'inertia [kg m^2]', machine.mass_matrix(path.theta), row['inertia'])
            _worse(worst, 'crank acceleration under it [rad/s^2]',
                   machine.forward_dynamics(path.theta, path.thetadot, np.array([row['tau1']])), path.thetadd)
            joints = _joints(machine, *path)
            for joint, *ref in zip(('crank', 'coupler', 'rocker'), row['theta'], row['rate'], row['acc']):
                _worse(worst, 'angles [rad]', whole_turns_off(joints[joint][0] - ref[0]), 0.0)
                _worse(worst, 'rates [rad/s], accelerations [rad/s^2]', joints[joint][1:], ref[1:])
        for name, value in worst.items():
            findings.below('four-bar', f'{mode}: {name}, worst of {len(rows)} instants', value, BOUND)


def five_bar(findings):
    for mode, words in FIVE_BAR_MODES.items():
        machine, worst = load('five_bar', initial=FIVE_BAR_INITIAL[mode]), {}
        rows = case('five_bar', mode)['inverse_dynamics']
        for row in rows:
            path = denoc.trajectory(row['t'], T, *FIVE_BAR_ENDS)
            _worse(worst, 'torques [N m]', machine.inverse_dynamics(*path), row['tau'])
            _worse(worst, 'GIM [kg m^2]', machine.mass_matrix(path.theta), row['gim'])
            _worse(worst, 'accelerations under them [rad/s^2]',
                   machine.forward_dynamics(path.theta, path.thetadot, np.array(row['tau'])), path.thetadd)
            joints = _joints(machine, *path)
            for leg in (1, 2):
                angle, rate, acceleration = joints[f'elbow_{leg}']
                _worse(worst, 'elbow angles [rad]', whole_turns_off(angle - row['theta2'][leg - 1]), 0.0)
                _worse(worst, 'elbow rates [rad/s], accelerations [rad/s^2]', (rate, acceleration),
                       (row['rate2'][leg - 1], row['acc2'][leg - 1]))
        for name, value in worst.items():
            findings.below('five-bar', f'{words}: {name}, worst of {len(rows)} instants', value, BOUND)


def free_bars(findings):
    """Free motion without torque, from rest."""
    for name, modes, initial in (('four_bar', FOUR_BAR_MODES, FOUR_BAR_INITIAL),
                                 ('five_bar', FIVE_BAR_MODES, FIVE_BAR_INITIAL)):
        for mode in modes:
            machine, ref = load(name, initial=initial[mode]), case(name, mode)['free_fall']
            n, start = machine.dof, np.atleast_1d(ref['theta1_0']).astype(float)
            samples = [sample for sample in ref['samples'] if sample['t'] <= 2]

            def rate(t, y, machine=machine, n=n):
                return np.concatenate((y[n:], machine.forward_dynamics(y[:n], y[n:], np.zeros(n))))
            run = solve_ivp(rate, (0, samples[-1]['t']), np.concatenate((start, np.zeros(n))),
                            t_eval=[sample['t'] for sample in samples], **TIGHT)
            error = np.abs(run.y[:n].T - [np.atleast_1d(sample['theta1']) for sample in samples]).max()
            words = FIVE_BAR_MODES.get(mode, mode)
            findings.below(name.replace('_', '-'), f'{words}: free motion, worst crank angle up to '
                           f'{samples[-1]["t"]:g} s [rad]', error, 1e-7)


def pkm(findings):
    """Efforts of least norm of the redundant machine; its coordinates follow from the actuators."""
    machine, worst, reference = load('pkm_2pur2rpu'), {}, noc.Machine()
    actuators = ('slider_1', 'slider_2', 'leg_3', 'leg_4')
    order = [machine.actuators.index(name) for name in actuators]
    to_coordinates = machine.joint_map(actuators)
    rows = stored('pkm_2pur2rpu')['rows']
    for row in rows:
        # the file's qdd are differences, good to 1e-8
        path = noc.trajectory(reference, row['t'])
        qdd = (noc.actuator_jacobian(reference, path.x) @ path.xdd
               + noc.rate_along(noc.actuator_jacobian, reference, path.x, path.xd) @ path.xd)
        x, xd, xdd = to_coordinates.motion(np.array(row['q']), np.array(row['qd']), qdd)
        effort = machine.inverse_dynamics(x, xd, xdd)
        joints = _joints(machine, x, xd, xdd)
        _worse(worst, 'actuator positions [m]', [joints[name][0] for name in actuators], row['q'])
        _worse(worst, 'actuator forces of least norm [N]', effort[order], row['tau_a0'])
        _worse(worst, 'accelerations under them, of the coordinates', machine.forward_dynamics(x, xd, effort), xdd)
    for name, value in worst.items():
        bound = 1e-8 if 'forces' in name else BOUND
        findings.below('2PUR-2RPU', f'{name}, worst of {len(rows)} instants', value, bound)


# --- the balloon


class Flight:
    """The balloon by `load` under the forces of config/balloon.yaml, as an equation for integrators."""

    def __init__(self):
        self.machine = load('balloon', allow_unphysical=True)
        self.forces = ExternalForces(self.machine, find_config('balloon.yaml'))
        self.start = np.concatenate((self.machine.initial_position, np.zeros(9)))

    def rate(self, t, y):
        x, xd = y[:10].copy(), y[10:]
        x[3:7] /= np.linalg.norm(x[3:7])
        xdd = self.machine.forward_dynamics(x, xd, np.zeros(0), **self.forces(x, xd)._asdict())
        return np.concatenate((rotation_of(x[3:7]) @ xd[:3], quaternion_rate(x[3:7], xd[3:6]), xd[6:], xdd))


def balloon_start(findings):
    flight = Flight()
    comp = flight.rate(0.0, flight.start)[10:]
    ref = stored('balloon')['initial_acceleration_dual_body_frame']
    findings.below('balloon', "initial accelerations x'dot_B, slider, pendulums, worst", np.abs(comp - ref).max(),
                   BOUND)


def balloon_flight(findings):
    flight, rows = Flight(), stored('balloon')['rows']
    run = solve_ivp(flight.rate, (0, 20), flight.start, t_eval=[row['t'] for row in rows], **TIGHT)
    worst = max(np.abs(outputs(y[:3], y[3:7], y[7:10]) - row_outputs(row)).max() for y, row in zip(run.y.T, rows))
    findings.below('balloon', f'nine responses over 20 s, worst of {len(rows)} instants', worst, 1e-6)


STEPS = (('four-bar', four_bar, False), ('five-bar', five_bar, False), ('free bars', free_bars, True),
         ('2PUR-2RPU', pkm, False),
         ('balloon, start', balloon_start, False), ('balloon, 20 s', balloon_flight, True))
