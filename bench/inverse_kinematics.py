"""Inverse kinematics of random reachable positions and poses: `python -m bench.inverse_kinematics`.

Prints how many of them are solved, and the processor time that one takes, which other programs hardly change.
"""

import time

import numpy as np

import psdyn_ros
from psdyn_ros.api.motion.samples import ranges
from psdyn_ros.model.errors import PsdynError
from psdyn_ros.model.locate import find_machine

LINKS = {'hiab_xs031': 'tcp', 'hiab_xs031_lift': 'lift_boom_link', 'four_bar': 'coupler_link', 'five_bar': 'tcp',
         'excavator': 'tcp', 'pkm_2pur2rpu': 'tcp'}
COUNT = 300


def reachable(m, link, rng):
    """COUNT poses (4, 4) of a link at positions within all limits at which the loops close."""
    box, poses = ranges(m), []
    while len(poses) < COUNT:
        x = m.initial_position.copy()
        x[m.nx - len(m.coordinates):] = rng.uniform(box.lower, box.upper)
        try:
            position = dict(zip(*m.joint_state(x)[:2]))
            actuators = np.array([position[name] for name in m.actuators])
            if (actuators >= m.limits.lower).all() and (actuators <= m.limits.upper).all():
                poses.append(m.link_pose(x, link))
        except PsdynError:
            continue
    return poses


def main():
    """Print a table in Markdown."""
    print('| machine | target | solved | median | 99 % |\n|---|---|---|---|---|')
    for name, link in LINKS.items():
        m, rng = psdyn_ros.load(find_machine(name)), np.random.default_rng(1)
        m.inverse_kinematics(link, m.link_pose(m.initial_position, link))       # compiles
        for target, poses in (('position', [pose[:3, 3] for pose in reachable(m, link, rng)]),
                              ('pose', reachable(m, link, rng))):
            times, solved = [], 0
            for pose in poses:
                start = time.thread_time()
                try:
                    m.inverse_kinematics(link, pose)
                    solved += 1
                except PsdynError:
                    pass
                times.append(1e3 * (time.thread_time() - start))
            median, most = np.percentile(times, (50.0, 99.0))
            print(f'| `{name}` | {target} | {solved} of {COUNT} | {median:.2f} ms | {most:.1f} ms |', flush=True)


if __name__ == '__main__':
    main()
