"""The flat records of a machine driven by oil: `AXIS`, `CYLINDER`, `SUPPLY`, and their telemetry, `QUANTITIES`.

Pressures are gauge [Pa], the return line near zero.  Chamber A is the one whose pressure moves the axis in its positive
direction: the piston side of a cylinder.  Edges of a valve are P-A, A-T, P-B, B-T; the spool is positive where P-A and
B-T open.

CYLINDER describes motors and racks too.  On a revolute joint x is its angle, areas are volumes per angle [m^3/rad] and
forces are torques: of a rack the area of the piston times the radius of the pinion, of a motor its displacement per
radian times the ratio of its gear.
"""
import numpy as np

PA, AT, PB, BT = 0, 1, 2, 3                     # edges of a valve
VALVE, FORCE, MEASURED_FORCE, MEASURED_PRESSURE = 0, 1, 2, 3    # `drive` of an axis
PRESSURE_A, PRESSURE_B, SPOOL, SPOOL_RATE, HOLDING_A, HOLDING_B = 0, 1, 2, 3, 4, 5   # columns of the fluid state (n, 6)
FLUID = 6

# One for each actuator of the machine, in their order.
AXIS = np.dtype([
    ('cylinder', 'i8'),         # row of CYLINDER, -1 where no cylinder drives it
    ('drive', 'i8'),            # VALVE: chambers give the force; FORCE: `effort` does; MEASURED_*: a real cylinder does
    ('effort', 'f8'),           # N or N m: FORCE, or measured on a real cylinder (friction included)
    ('coulomb', 'f8'),          # friction: F_c tanh(v / slip) + (F_s - F_c) exp(-(v / v_st)^2) tanh(v / slip) + b v
    ('stribeck', 'f8'),         # F_s - F_c
    ('stribeck_velocity', 'f8'),
    ('viscous', 'f8'),
    ('slip', 'f8'),
    ('bristle', 'f8'),          # LuGre: stiffness sigma_0 [N/m], 0: the regularised law above
    ('bristle_damping', 'f8'),  # sigma_1 [N s/m], faded out by exp(-(v / v_st)^2)
    ('lower', 'f8'),            # end stops, Hunt-Crossley k d (1 + c d'), never pulling; +-inf: none
    ('upper', 'f8'),
    ('stop_stiffness', 'f8'),
    ('stop_damping', 'f8'),
    ('braked', 'i8'),           # 1: a brake holds it: hold - k (x - x_b) - d v on top of all else
    ('brake_position', 'f8'),
    ('brake_force', 'f8'),      # force of the brake at its position
    ('brake_stiffness', 'f8'),
    ('brake_damping', 'f8'),
], align=True)

CYLINDER = np.dtype([
    ('axis', 'i8'),             # row of AXIS
    ('area_a', 'f8'), ('area_b', 'f8'),         # m^2, m^3/rad
    ('dead_a', 'f8'), ('dead_b', 'f8'),         # m^3, hoses included
    ('start', 'f8'),            # m, rad: position at which chamber A is empty but for its dead volume
    ('stroke', 'f8'),           # m, rad, rated: V_a = dead_a + area_a (x - start), V_b = dead_b + area_b (end - x)
    ('motor', 'i8'),            # 1: the chambers keep their dead volumes wherever the axis stands
    ('bulk', 'f8'),             # effective bulk modulus of oil (and walls, where lumped) [Pa]
    ('air', 'f8'),              # share of free air in the oil at atmospheric pressure; 0: `bulk` is constant
    ('polytropic', 'f8'),       # exponent of that air
    ('wall', 'f8'),             # bulk modulus of the cylinder's wall [Pa], inf: stiff
    ('hose', 'f8'),             # bulk modulus of the hoses [Pa], inf: stiff
    ('hose_a', 'f8'), ('hose_b', 'f8'),         # volume of the hoses [m^3], part of the dead volumes
    ('gain', 'f8', 4),          # flow of an edge at full opening [m^3/(s sqrt(Pa))]: Q = gain opening sq(dp)
    ('linear', 'f8'),           # sq(z) = z / (z^2 + linear^2)^(1/4) [Pa]
    ('compensated', 'i8'),      # 1: metering edges (P-A, P-B) see `margin` at most
    ('sharing', 'i8'),          # 1: metering edges see what is between the line and `sensed`, flow sharing
    ('margin', 'f8'),           # Pa, of a compensator; of a flow-sharing valve that of the supply
    ('check', 'i8'),            # 1: no oil goes back through metering edges
    ('regenerative', 'i8'),     # 1: port B empties into chamber A where the spool is positive
    ('sensed', 'f8'),           # Pa, the highest load pressure, kept by `store_load_pressure`
    ('omega', 'f8'), ('zeta', 'f8'), ('slew', 'f8'),        # spool: rad/s, 1, 1/s
    ('overlap_up', 'f8'), ('overlap_down', 'f8'),           # dead band of the spool, share of its travel each way
    ('jump', 'i8'),             # 1: the valve's own electronics jump over the dead band
    ('leak', 'f8'),             # across the piston [m^3/(s Pa)]
    ('drain', 'f8'),            # from each chamber to the return line, through the case of a motor [m^3/(s Pa)]
    ('relief', 'f8'),           # Pa, of both ports
    ('relief_gain', 'f8'),      # m^3/(s Pa) beyond it
    ('suction', 'f8'),          # anti-cavitation from the return line: suction z^2 / (z + 1 bar)
    ('holding', 'i8', 2),       # 1: a load-holding valve stands at port A, B
    ('holding_setting', 'f8'),  # Pa: opens where p_load + ratio p_pilot exceeds it
    ('holding_ratio', 'f8'),
    ('holding_range', 'f8'),    # Pa from closed to open
    ('holding_time', 'f8'),     # s, time constant
    ('holding_gain', 'f8'),     # flow when open, in series with the edge of the spool
    ('cushion_a', 'f8'), ('cushion_b', 'f8'),   # length at the end that chamber A, B empties to [m, rad]; 0: none
    ('cushion_gain', 'f8'),     # flow gain of the restriction at the very end, in series with the edge
    ('command', 'f8'),          # of the spool, -1 to 1
    ('stuck', 'i8'),            # 1: the spool stays where it is
    ('offset', 'f8'),           # of the spool's zero
], align=True)

SUPPLY = np.dtype([
    ('pressure', 'f8'),         # Pa, setting of the pump
    ('return_pressure', 'f8'),
    ('limited', 'i8'),          # 0: `pressure` whatever the flow; 1: the state `supply_pressure` follows
    ('flow', 'f8'),             # m^3/s, largest flow of the pump
    ('droop', 'f8'),            # Pa below `pressure` at which the pump gives `flow`
    ('capacity', 'f8'),         # m^3/Pa of the line (volume / bulk modulus, accumulator)
    ('sensing', 'i8'),          # 1: load sensing; the line follows the highest load pressure plus `margin`
    ('margin', 'f8'),           # Pa
    ('lag', 'f8'),              # s, time constant
    ('sensed', 'f8'),           # Pa, the highest load pressure, kept by `store_load_pressure`
], align=True)

QUANTITIES = ('pressure_a', 'pressure_b', 'flow_a', 'flow_b', 'spool_position', 'valve_command', 'friction_force',
              'net_force', 'supply_pressure', 'load_pressure')  # columns of the telemetry (cylinders, 10); flows into
# the chambers, load pressure: the highest of all that load sensing sees, that of the return line without it
