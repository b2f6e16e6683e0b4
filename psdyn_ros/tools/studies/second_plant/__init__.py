"""A plant of its own for judging controllers: other equations, integrator, friction, valves and sensors than `simulation`.

Nothing here uses kernels, API or simulation; machines and hydraulics come through the readers of `model`.
"""

from .plant import SecondPlant
from .sensors import PERFECT, Sensors

__all__ = ['PERFECT', 'SecondPlant', 'Sensors']
