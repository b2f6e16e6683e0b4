"""Parameters of what all hydraulic drives of a machine share: the pump with its line, and the oil."""
from __future__ import annotations

import math
from dataclasses import dataclass

from .parameter_blocks import block, number


@dataclass(frozen=True, kw_only=True)
class LoadSensing:
    """A pump whose pressure follows the highest load pressure of all valves that are open, up to the setting of the
    supply; valves have load checks, so that no oil goes back through P-A and P-B."""

    margin: float = number('Pa above the highest load pressure', low=1e5, high=1e7)
    time_constant: float = number('s, with which the pressure of the line follows as long as the flow suffices', 0.05,
                                  low=1e-3, high=10.0)


@dataclass(frozen=True, kw_only=True)
class Supply:
    """The pump and its line, shared by all cylinders."""

    pressure: float = number('Pa, what the pump is set to', low=1e5, high=1e8)
    return_pressure: float = number('Pa, of the return line', 0.0, low=0.0, high=1e7)
    max_flow: float = number('m^3/s, the most that the pump gives; none: the pressure holds at any flow', math.inf,
                             low=1e-6, high=1.0)
    droop: float = number('Pa below its pressure at which the pump gives all its flow; nothing with load_sensing', 1e6,
                          low=1e4, high=1e7)
    line_volume: float = number('m^3 of the pressure line, an accumulator as the volume that is as soft', 1e-3,
                                low=1e-6, high=1.0)
    load_sensing: LoadSensing | None = block(LoadSensing, 'a pump that follows the load; absent: constant pressure',
                                             None)

    def largest_forces(self, cylinder, pressure=None):
        """(outward, inward) [N, N m] of a `Cylinder` through its open valve; pressure: in place of that of the pump."""
        pressure = self.pressure if pressure is None else pressure
        # a regenerative valve has the pressure of chamber A on the other side, too
        against = pressure if cylinder.valve.regenerative else self.return_pressure
        return (pressure * cylinder.area_a - against * cylinder.area_b,
                pressure * cylinder.area_b - self.return_pressure * cylinder.area_a)


@dataclass(frozen=True, kw_only=True)
class Oil:
    """The oil of all chambers; viscosity scales leakage and the viscous friction of cylinders."""

    bulk_modulus: float = number(
        'Pa, at the reference temperature: effective of oil and walls (0.8e9 to 1.6e9 is usual), or of the oil alone '
        'where wall_modulus and hose_modulus are given', low=1e7, high=1e10)
    air_content: float = number('1, share of free air in its volume at atmospheric pressure', 0.0, low=0.0, high=0.2)
    polytropic_exponent: float = number('1, of that air: 1.4 for fast changes, 1 for slow ones', 1.4, low=1.0, high=1.7)
    temperature: float = number('deg C', 40.0, low=-40.0, high=120.0)
    reference_temperature: float = number('deg C, for which bulk modulus, leakage and viscous friction are given', 40.0,
                                          low=-40.0, high=120.0)
    viscosity_coefficient: float = number('1/K: viscosity changes by exp(-coefficient (T - reference))', 0.03,
                                          low=0.0, high=0.2)
    bulk_coefficient: float = number('1/K: the bulk modulus changes by exp(-coefficient (T - reference))', 0.005,
                                     low=0.0, high=0.1)
