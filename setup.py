"""Installs psdyn_ros with colcon (ament_python) and with pip."""

import sys
import xml.etree.ElementTree as ElementTree
from glob import glob

from setuptools import find_packages, setup

NAME = 'psdyn_ros'
manifest = ElementTree.parse('package.xml').getroot()

shared = [
    ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
    (f'share/{NAME}', ['package.xml', 'LICENSE', 'NOTICE', 'SECURITY.md']),
    (f'share/{NAME}/launch', sorted(glob('launch/*.launch.py'))),
    (f'share/{NAME}/config', sorted(
        glob('config/*.yaml') + glob('config/*.rviz') + glob('config/*.xml'))),
    (f'share/{NAME}/config/security', sorted(glob('config/security/*'))),
    (f'share/{NAME}/config/ros2_control', sorted(glob('config/ros2_control/*.yaml'))),
    (f'share/{NAME}/urdf', sorted(glob('urdf/*.urdf'))),
    (f'share/{NAME}/urdf/ros2_control', sorted(glob('urdf/ros2_control/*.urdf'))),
]
# An editable installation reads them from the source tree; copies in share/ would come first and go stale.
if 'editable_wheel' in sys.argv:
    shared = []

setup(
    name=NAME,
    version=manifest.findtext('version'),  # written in package.xml and nowhere else
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', '**/*.html', 'view/assets/*.js', '**/*.j2', '**/README.md',
                         'tools/papers/data/*']},
    data_files=shared,
    python_requires='>=3.10',
    install_requires=[
        'argcomplete', 'defusedxml', 'jinja2', 'lz4', 'matplotlib', 'mcap', 'numba', 'numpy>=1.26', 'pyyaml', 'rosbags',
        'scipy', 'tqdm', 'transforms3d', 'zstandard',
    ],
    extras_require={
        'fleet': ['dask', 'distributed'], 'frames': ['pandas'], 'view': ['trimesh'],
        'test': ['pytest'],     # `colcon test` runs unittest where no package asks for pytest
    },
    zip_safe=False,
    maintainer=manifest.findtext('maintainer'),
    maintainer_email=manifest.find('maintainer').get('email'),
    description=' '.join(manifest.findtext('description').split()),
    license=manifest.findtext('license'),
    entry_points={
        'console_scripts': [
            'psdyn = psdyn_ros.cli:main',
            'simulator = psdyn_ros.nodes.simulator.node:main',
            'controller = psdyn_ros.nodes.controller.node:main',
            'rig = psdyn_ros.nodes.observers.rig:main',
            'loop_state = psdyn_ros.nodes.observers.loop_state:main',
            'feedforward = psdyn_ros.nodes.observers.feedforward:main',
            'annotator = psdyn_ros.nodes.observers.annotator:main',
            'planner = psdyn_ros.nodes.observers.planner:main',
            'validator = psdyn_ros.nodes.observers.validator:main',
        ],
    },
)
