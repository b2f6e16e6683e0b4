"""A second plant for judging controllers: equations, integrator, friction, valves and sensors of its own.

Nothing here uses kernels, API or simulation; machines and hydraulics come through the readers of `model`.
"""

from .plant import SecondPlant
from .sensors import PERFECT, Sensors

__all__ = ['PERFECT', 'SecondPlant', 'Sensors']
