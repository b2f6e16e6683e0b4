"""
Hydraulic drives of a machine, from YAML: supply, oil, cylinders, motors and racks by joint, and axes without oil.

    supply: {pressure: 19e6, return_pressure: 1e6}
    oil: {bulk_modulus: 800e6}
    cylinders:
      lift_cylinder:
        bore: 0.08
        rod: 0.045
        stroke: 0.59
        dead_volume_a: 3e-3
        dead_volume_b: 3e-3
        valve: {nominal_flow: 1.667e-3, nominal_pressure_drop: 7e6, natural_frequency: 30}
        safe_output: valve_neutral
    racks:
      slew: {bore: 0.1, pinion_radius: 0.15, stroke: 0.94, ...}
    motors:
      rotator: {displacement: 1e-4, gear_ratio: 20, ...}
    axes:
      winch: {safe_output: brake, brake: {stiffness: 1e7, damping: 1e5}}

SI units; pressures are gauge.  Chamber A is the piston side, which extends the cylinder; of motors and racks the one
whose pressure turns the joint in its positive direction.  Cylinders drive prismatic joints, motors and racks revolute
ones: their areas are volumes per angle [m^3/rad], so that pressure times area is a torque and flow over area an angular
rate (Merritt, Hydraulic Control Systems, 1967, section 4-3).  Every actuator of the machine stands in exactly one of
`cylinders`, `motors`, `racks` and `axes`.  `python3 -m psdyn_ros.model.parameters.hydraulics` prints all
parameters.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import ClassVar

import yaml

from ..errors import ActuationError, ModelError, shorten
from ..mechanism.description import SLIP_VELOCITY
from ..short_repr import short_repr
from ..yaml_file import open_declaration
from .parameter_blocks import block, choice, flag, integer, markdown, number, numbers, read_block, read_blocks
from .supply import Oil, Supply

VALVE_NEUTRAL, BRAKE = 'valve_neutral', 'brake'
MODES = VALVE, PRESSURE, VELOCITY, EFFORT = 'valve', 'pressure', 'velocity', 'effort'   # of commands
STRIBECK, LUGRE = 'stribeck', 'lugre'
MOMENTUM = 4.0          # times the largest force of a cylinder that its stop may take from a load in motion
NOTHING = ('zero', 'zero_effort', 'zero_force', 'none', 'off', 'free', 'float')


@dataclass(frozen=True, kw_only=True)
class Valve:
    """A spool of four edges, P-A, A-T, P-B, B-T; it is positive where P-A and B-T open, which extends the cylinder."""

    nominal_flow: tuple = numbers('m^3/s through an edge that is fully open, at the nominal pressure drop of that edge '
                                  '(P-A, A-T, P-B, B-T)', 4, low=1e-9, high=1.0)
    nominal_pressure_drop: float = number('Pa, across one edge', low=1e4, high=1e8)
    natural_frequency: float = number('Hz, of the spool', low=0.1, high=1000.0)
    damping: float = number('1, damping ratio of the spool', 0.707, low=0.05, high=10.0)
    slew_limit: float = number('1/s, rate of the spool; its travel is -1 to 1', 100.0, low=0.01, high=1e5)
    dead_band: tuple = numbers('1, share of the spool travel that opens nothing (positive way, negative way)', 2, 0.0,
                               low=0.0, high=0.9)
    dead_band_compensation: bool = flag("whether the valve's own electronics jump over the dead band", False)
    linear_range: float = number('Pa, pressure drop below which flow grows about linearly with it', 2e5, low=1e2,
                                 high=1e7)
    compensated: bool = flag('whether a pressure compensator keeps the flow of P-A and P-B from depending on the load',
                             False)
    compensator_margin: float = number('Pa, the most that a compensated edge sees', 1e6, low=1e4, high=1e7)
    flow_sharing: bool = flag('whether it is post-compensated (LUDV): P-A and P-B see what the line has above the '
                              'highest load, so that flows keep their ratio where the pump gives too little; needs '
                              'load_sensing of the supply', False)
    regenerative: bool = flag('whether chamber B empties into A, through B-T and a check valve, while A is fed', False)

    @property
    def load_independent(self) -> bool:
        """Whether a compensator, before or behind the metering edge, keeps its flow from depending on the load."""
        return self.compensated or self.flow_sharing


@dataclass(frozen=True, kw_only=True)
class Relief:
    """Relief valves of both ports to the return line."""

    pressure: float = number('Pa, at which they open', low=1e5, high=2e8)
    gain: float = number('m^3/(s Pa) beyond it', 2e-9, low=1e-13, high=1e-5)


@dataclass(frozen=True, kw_only=True)
class LoadHolding:
    """Counterbalance valve at a port: free flow in, flow out only when the pressures of load and pilot open it."""

    ports: str = choice('where such valves stand', ('a', 'b', 'both'))
    setting: float = number('Pa: it opens where load pressure + pilot_ratio x pilot pressure exceeds it', low=1e5,
                            high=2e8)
    pilot_ratio: float = number('1; the pilot is the line of the other chamber', 4.0, low=0.0, high=50.0)
    range: float = number('Pa from closed to fully open', 2e6, low=1e4, high=1e8)
    time_constant: float = number('s, of its opening', 0.02, low=1e-4, high=10.0)
    gain: float = number('m^3/(s sqrt(Pa)), flow when fully open, in series with the edge of the spool: nominal flow / '
                         'sqrt(pressure drop)', low=1e-12, high=1e-2)


@dataclass(frozen=True, kw_only=True)
class Cushion:
    """Restriction of the outflow near the ends of the stroke."""

    length_a: float = number('m of piston travel before the end to which chamber A empties, the retracted one; 0: none',
                             0.0, low=0.0, high=5.0)
    length_b: float = number('m of piston travel before the end to which chamber B empties, the extended one; 0: none',
                             0.0, low=0.0, high=5.0)
    gain: float = number('m^3/(s sqrt(Pa)), flow at the very end, in series with the edge of the spool', low=1e-12,
                         high=1e-2)


@dataclass(frozen=True, kw_only=True)
class Friction:
    """F_c tanh(v / v_s) + (F_s - F_c) exp(-(v / v_st)^2) tanh(v / v_s) + b v; in the LuGre model a bristle takes the
    place of tanh.  Both at once, here and in the dynamics tag of the URDF, are refused."""

    coulomb: float = number('N or N m, level F_c', 0.0, low=0.0, high=1e7)
    viscous: float = number('N s/m or N m s/rad, b, at the reference temperature of the oil', 0.0, low=0.0, high=1e8)
    slip_velocity: float = number('m/s or rad/s, v_s of the regularised law', SLIP_VELOCITY, low=1e-6, high=1.0)
    stribeck: float = number('N or N m, F_s - F_c that breaks away', 0.0, low=0.0, high=1e7)
    stribeck_velocity: float = number('m/s or rad/s, v_st', 0.02, low=1e-6, high=10.0)
    model: str = choice('law', (STRIBECK, LUGRE), STRIBECK)
    presliding: float = number('m or rad, deflection at which the bristle gives F_s (lugre)', 5e-4, low=1e-7,
                               high=0.1)
    bristle_damping: float = number('N s/m or N m s/rad, of the bristle (lugre), faded out by exp(-(v / v_st)^2)', 0.0,
                                    low=0.0, high=1e8)


@dataclass(frozen=True, kw_only=True)
class EndStop:
    """Stops at the limits of the joint: k d (1 + c d') at depth d, never pulling."""

    stiffness: float = number('N/m or N m/rad, k; 0: none', 5e7, low=0.0, high=1e11)
    damping: float = number('s/m or s/rad, c', 1.0, low=0.0, high=1e3)


@dataclass(frozen=True, kw_only=True)
class Brake:
    """Holds the axis where it was engaged."""

    stiffness: float = number('N/m or N m/rad', low=1e2, high=1e11)
    damping: float = number('N s/m or N m s/rad', low=0.0, high=1e10)


STOP = EndStop()


def _safe_output(choices):
    return choice('what it does without a fresh command; mandatory, since no force at all would drop the load', choices)


@dataclass(frozen=True, kw_only=True)
class OilDrive:
    """What cylinders, motors and racks share; all is of the joint that it drives."""

    count: int = integer('of identical ones on this joint', 1, low=1, high=16)
    dead_volume_a: float = number('m^3 of chamber A at its smallest (the retracted end), hoses included', low=1e-7,
                                  high=1.0)
    dead_volume_b: float = number('m^3 of chamber B at its smallest (the extended end), hoses included', low=1e-7,
                                  high=1.0)
    hose_volume_a: float = number('m^3 of the hose in dead_volume_a', 0.0, low=0.0, high=1.0)
    hose_volume_b: float = number('m^3 of the hose in dead_volume_b', 0.0, low=0.0, high=1.0)
    hose_modulus: float = number('Pa, bulk modulus of the hoses; none: stiff', math.inf, low=1e6, high=1e12)
    wall_modulus: float = number("Pa, bulk modulus of the chambers' walls; none: stiff", math.inf, low=1e8, high=1e13)
    valve: Valve = block(Valve, 'between supply and chambers')
    leakage: float = number('m^3/(s Pa) from chamber to chamber, at the reference temperature', 0.0, low=0.0, high=1e-8)
    relief: Relief | None = block(Relief, 'relief valves of both ports', None)
    anti_cavitation: float = number('m^3/(s Pa), check valves from the return line: gain z^2 / (z + 1 bar) at z below '
                                    'its pressure; 0: none', 2e-9, low=0.0, high=1e-5)
    load_holding: LoadHolding | None = block(LoadHolding, 'counterbalance valves', None)
    friction: Friction | None = block(Friction, 'of the drive, at the joint; absent: that of the URDF, if it has any',
                                      None)
    end_stop: EndStop = block(EndStop, 'stops at the limits of the joint', STOP)
    brake: Brake | None = block(Brake, 'a brake on the joint', None)
    safe_output: str = _safe_output((VALVE_NEUTRAL, BRAKE))
    command_mode: str = choice('what a command is: -1 to 1, Pa, m/s or rad/s, N or N m', MODES, VALVE)
    where: str = field(default='', compare=False)

    __repr__ = short_repr
    kind: ClassVar[str] = 'rack'
    joint_types: ClassVar[tuple[str, ...]] = ('revolute', 'continuous')
    unit: ClassVar[str] = 'rad'
    effort_unit: ClassVar[str] = 'N m'
    area_unit: ClassVar[str] = 'm^3/rad'

    @property
    def case_leakage(self) -> float:
        """m^3/(s Pa), of both ports to the return line."""
        return 0.0

    @property
    def cushion(self) -> Cushion | None:
        """The cushions at the ends of the stroke."""
        return None

    @property
    def lever(self) -> float:
        """m of piston travel for a unit of the joint."""
        return 1.0

    @property
    def reach(self) -> tuple[float, float]:
        """Positions of the joint [m, rad] between which the chambers have room, at rated ends."""
        return -math.inf, math.inf


@dataclass(frozen=True, kw_only=True)
class Cylinder(OilDrive):
    """A cylinder with its valve; several alike side by side count as one.  Dimensions, volumes and leakage are of one
    of them, all else is of all together."""

    bore: float = number('m, diameter of the piston', low=1e-3, high=2.0)
    rod: float = number('m, diameter of the rod', low=5e-4, high=2.0)
    count: int = integer('of identical cylinders side by side on this joint', 1, low=1, high=16)
    stroke: float = number('m, rated: from the retracted end at joint position zero', low=1e-3, high=50.0)
    cushion: Cushion | None = block(Cushion, 'end-of-stroke cushions', None)

    __repr__ = short_repr
    kind: ClassVar[str] = 'cylinder'
    joint_types: ClassVar[tuple[str, ...]] = ('prismatic',)
    unit: ClassVar[str] = 'm'
    effort_unit: ClassVar[str] = 'N'
    area_unit: ClassVar[str] = 'm^2'

    @property
    def area_a(self) -> float:
        """m^2, piston side of all of them."""
        return self.count * math.pi / 4.0 * self.bore ** 2

    @property
    def area_b(self) -> float:
        """m^2, rod side of all of them."""
        return self.count * math.pi / 4.0 * (self.bore ** 2 - self.rod ** 2)

    @property
    def reach(self) -> tuple[float, float]:
        """Positions of the joint [m] at the rated ends."""
        return 0.0, self.stroke


@dataclass(frozen=True, kw_only=True)
class Rack(OilDrive):
    """Cylinders whose rack turns a pinion on a revolute joint, with their valve.  The piston, or the plunger, of
    chamber A pushes the rack so that the joint turns in its positive direction, that of chamber B against it.
    Dimensions, volumes and leakage are of one rack, all else is of all together."""

    bore: float = number('m, diameter of the pistons or plungers', low=1e-3, high=2.0)
    rod: float = number('m, diameter of the rod in chamber B; 0: pistons or plungers at both ends of the rack', 0.0,
                        low=0.0, high=2.0)
    count: int = integer('of racks on the pinion', 1, low=1, high=2)
    pinion_radius: float = number('m, of the pitch circle', low=1e-3, high=5.0)
    stroke: float = number('m, rated, of the rack', low=1e-3, high=50.0)
    centre: float = number('rad, position of the joint with the rack in the middle of its stroke', 0.0, low=-20.0,
                           high=20.0)
    cushion: Cushion | None = block(Cushion, 'end-of-stroke cushions', None)

    __repr__ = short_repr

    @property
    def area_a(self) -> float:
        """m^3/rad: area times radius of the pinion, of all of them."""
        return self.count * math.pi / 4.0 * self.bore ** 2 * self.pinion_radius

    @property
    def area_b(self) -> float:
        """m^3/rad, of chamber B."""
        return self.count * math.pi / 4.0 * (self.bore ** 2 - self.rod ** 2) * self.pinion_radius

    @property
    def lever(self) -> float:
        """m of piston travel for a radian of the joint."""
        return self.pinion_radius

    @property
    def reach(self) -> tuple[float, float]:
        """Positions of the joint [rad] at the rated ends."""
        half = 0.5 * self.stroke / self.pinion_radius
        return self.centre - half, self.centre + half


@dataclass(frozen=True, kw_only=True)
class Motor(OilDrive):
    """A hydraulic motor that turns a revolute joint through a gear, with its valve.  Displacement, volumes and leakage
    are of one motor, all else is of all together; friction is that of motor and gear, at the joint."""

    displacement: float = number('m^3 per revolution of the motor', low=1e-8, high=0.1)
    gear_ratio: float = number('1, revolutions of the motor for one of the joint, all stages together', 1.0, low=0.01,
                               high=1e5)
    count: int = integer('of identical motors on this joint', 1, low=1, high=16)
    dead_volume_a: float = number('m^3 between valve and motor on the side of port A, hoses included', low=1e-7,
                                  high=1.0)
    dead_volume_b: float = number('m^3 between valve and motor on the side of port B, hoses included', low=1e-7,
                                  high=1.0)
    case_leakage: float = number('m^3/(s Pa) from each port through the case to the return line, at the reference '
                                 'temperature', 0.0, low=0.0, high=1e-8)

    __repr__ = short_repr
    kind = 'motor'

    @property
    def area_a(self) -> float:
        """m^3/rad: displacement per radian of the joint, of all of them."""
        return self.count * self.displacement * self.gear_ratio / (2.0 * math.pi)

    @property
    def area_b(self) -> float:
        """m^3/rad, that of port A."""
        return self.area_a


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An actuator that no oil of this supply drives, such as an electric one: its command is its effort."""

    friction: Friction | None = block(Friction, 'of the axis; absent: that of the URDF, if it has any', None)
    end_stop: EndStop = block(EndStop, 'stops at the limits of the joint', STOP)
    brake: Brake = block(Brake, 'what holds it at its safe output')
    safe_output: str = _safe_output((BRAKE,))
    command_mode: str = choice('what a command is: N or N m', (EFFORT,), EFFORT)
    where: str = field(default='', compare=False)


@dataclass(frozen=True, kw_only=True)
class Hydraulics:
    """All of them, in the order of the actuators: cylinders {joint: Cylinder, Rack or Motor}, what oil drives, and
    axes {joint: Axis}."""

    supply: Supply
    oil: Oil
    cylinders: dict
    axes: dict
    where: str = field(default='', compare=False)

    __repr__ = short_repr

    @property
    def safe_outputs(self) -> dict[str, str]:
        """{actuator: name}."""
        return {joint: one.safe_output for joint, one in {**self.cylinders, **self.axes}.items()}

    @property
    def command_modes(self) -> dict[str, str]:
        """{actuator: mode}."""
        return {joint: one.command_mode for joint, one in {**self.cylinders, **self.axes}.items()}


DRIVES = {'cylinders': Cylinder, 'racks': Rack, 'motors': Motor}     # by section, each of an oil drive
JOINTS = {**DRIVES, 'axes': Axis}
REQUIRED = ('supply', 'oil')


def read_hydraulics(source: str | PathLike[str], actuators: Iterable[str]) -> Hydraulics:
    """Return the `Hydraulics` of a YAML file, or of YAML text, which has more than one line.

    actuators: names of the machine's actuators, of which each must be there once.  Raises ModelError, UnknownNameError,
    DuplicateNameError or ActuationError that name the file, its line, the joint and the parameter.
    """
    file = open_declaration('hydraulics', source)
    nodes = file.parts(file.root, REQUIRED, tuple(JOINTS))
    supply, places = read_block(Supply, file, *nodes['supply'], 'supply')
    _check_supply(supply, places)
    oil, _ = read_block(Oil, file, *nodes['oil'], 'oil')
    found: dict[str, tuple] = {}        # {joint: (section, declared, its places)}
    for section in JOINTS:
        for joint, (one, places) in _read_joints(file, nodes, section, actuators).items():
            if joint in found:
                raise ActuationError(f"{places['']}: the actuator stands in '{found[joint][0]}' too "
                                     f'({found[joint][1].where}); expected one of the two')
            found[joint] = section, one, places
    for one, places in (row[1:] for row in found.values()):
        _check_friction(one, places)
        if isinstance(one, OilDrive):
            _check_drive(one, places, supply)
    missing = [name for name in actuators if name not in found]
    if missing:
        raise ActuationError(f"{file.where(file.root)}: nothing for {', '.join(missing)}; expected every actuator in "
                             "'cylinders', 'racks' or 'motors', or, where no oil drives it, in 'axes'")
    declared = {joint: found[joint][1] for joint in actuators}
    return Hydraulics(supply=supply, oil=oil, where=str(file),
                      cylinders={joint: one for joint, one in declared.items() if isinstance(one, OilDrive)},
                      axes={joint: one for joint, one in declared.items() if isinstance(one, Axis)})


def _read_joints(file, nodes, section, actuators):
    """Return {joint: (an instance of the section's class, its places)}."""
    if section not in nodes:
        return {}
    what, (_, node) = 'axis' if section == 'axes' else JOINTS[section].kind, nodes[section]
    for key, value in file.mapping(node):
        _check_safe_output(f"{file.where(key)}: {what} '{shorten(key.value)}'", value)
    found = read_blocks(JOINTS[section], file, node, what, actuators)
    return {joint: (replace(one, where=places['']), places) for joint, (one, places) in found.items()}


def _check_safe_output(where, node):
    """Refuse the safe output that is none, before its name is looked up among those that are."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == 'safe_output' and str(value.value).lower() in NOTHING:
            raise ModelError(f"{where}: 'safe_output' is '{value.value}', with which the load would drop; expected "
                             f"'{VALVE_NEUTRAL}' of a cylinder, or '{BRAKE}'")


def _check_supply(supply, places):
    if supply.return_pressure >= supply.pressure:
        raise ModelError(f"{places.of('return_pressure')}: 'return_pressure' {supply.return_pressure:g} Pa is not "
                         f"below 'pressure' {supply.pressure:g} Pa")
    sensing = supply.load_sensing
    if sensing and sensing.margin >= supply.pressure - supply.return_pressure:
        raise ModelError(f"{places.of('load_sensing.margin')}: 'margin' {sensing.margin:g} Pa is not below 'pressure' "
                         f"- 'return_pressure' {supply.pressure - supply.return_pressure:g} Pa")
    if not sensing and supply.droop >= supply.pressure - supply.return_pressure:
        raise ModelError(f"{places.of('droop')}: 'droop' {supply.droop:g} Pa is not below 'pressure' - "
                         f"'return_pressure' {supply.pressure - supply.return_pressure:g} Pa")


def _check_drive(drive, places, supply):
    def refuse(name, message):
        raise ModelError(f'{places.of(name)}: {message}')

    if drive.kind != 'motor':
        _check_chambers(drive, supply, refuse)
    for port in 'ab':
        hose, dead = (getattr(drive, f'{what}_volume_{port}') for what in ('hose', 'dead'))
        if hose > dead:
            refuse(f'hose_volume_{port}', f"'hose_volume_{port}' {hose:g} m^3 is more than 'dead_volume_{port}' "
                                          f'{dead:g} m^3, of which it is a part')
        if hose and math.isinf(drive.hose_modulus):
            refuse(f'hose_volume_{port}', f"'hose_volume_{port}' is given without 'hose_modulus'")
    if not math.isinf(drive.hose_modulus) and not drive.hose_volume_a + drive.hose_volume_b:
        refuse('hose_modulus', "'hose_modulus' is given without 'hose_volume_a' or 'hose_volume_b'")
    if drive.relief and drive.relief.pressure <= supply.pressure:
        refuse('relief.pressure', f"'pressure' {drive.relief.pressure:g} Pa is not above that of the supply, "
                                  f'{supply.pressure:g} Pa')
    if drive.safe_output == BRAKE and drive.brake is None:
        refuse('safe_output', f"'safe_output' is '{BRAKE}', but there is no 'brake'; expected its stiffness, damping")
    _check_valve(drive, supply, refuse)
    if drive.command_mode == VELOCITY and not drive.valve.load_independent:
        refuse('command_mode', f"'command_mode' is '{VELOCITY}', but the flow of its valve depends on the load; "
                               "expected 'compensated: true' or 'flow_sharing: true' of the valve, or another mode")


def _check_valve(drive, supply, refuse):
    """Refuse compensation that the supply does not serve, and regeneration that pushes nothing."""
    valve = drive.valve
    if valve.flow_sharing and valve.compensated:
        refuse('valve.flow_sharing', "'flow_sharing' and 'compensated' are both true; expected one of the two")
    if valve.flow_sharing and not supply.load_sensing:
        refuse('valve.flow_sharing', "'flow_sharing' is true, but the supply has no 'load_sensing', whose margin it "
                                     'meters; expected it, or \'compensated: true\'')
    if valve.regenerative and not drive.area_a > drive.area_b:
        refuse('valve.regenerative', f"'regenerative' is true, but chamber A of the {drive.kind} is not larger than B, "
                                     f'{drive.area_a:.4g} and {drive.area_b:.4g} {drive.area_unit}: nothing would push')


def _check_chambers(drive, supply, refuse):
    """Refuse pistons of which chambers may vanish."""
    if drive.rod >= drive.bore:
        refuse('rod', f"'rod' {drive.rod:g} m is not smaller than 'bore' {drive.bore:g} m")
    push = drive.area_a * (drive.relief.pressure if drive.relief else supply.pressure)
    depth = MOMENTUM * push / drive.end_stop.stiffness if drive.end_stop.stiffness else 0.0
    for port, area in (('a', drive.area_a), ('b', drive.area_b)):
        dead, displaced = getattr(drive, f'dead_volume_{port}'), depth * area / drive.count
        if dead <= displaced:
            refuse(f'dead_volume_{port}', f"'dead_volume_{port}' {dead:g} m^3 may vanish in the stop, which yields "
                                          f'{depth:.3g} {drive.unit} under {MOMENTUM:g} times the {push:.4g} '
                                          f'{drive.effort_unit} of the {drive.kind}; expected more than '
                                          f'{displaced:.3g} m^3, or a stiffer end_stop')
    if drive.cushion and drive.cushion.length_a + drive.cushion.length_b > drive.stroke:
        refuse('cushion.length_a', f"'length_a' {drive.cushion.length_a:g} m and 'length_b' "
                                   f"{drive.cushion.length_b:g} m are longer than 'stroke' {drive.stroke:g} m")


def _check_friction(axis, places):
    friction = axis.friction
    if friction and friction.model == LUGRE and not friction.coulomb > 0.0:
        raise ModelError(f"{places.of('friction.model')}: 'model' is '{LUGRE}', whose bristle needs a 'coulomb' "
                         'friction above zero')


def tables():
    """Yield all parameters as Markdown."""
    yield from markdown('supply', Supply)
    yield from markdown('oil', Oil)
    for section, cls in JOINTS.items():
        yield from markdown(f'{section}: JOINT', cls)


if __name__ == '__main__':
    print('\n'.join(tables()))
