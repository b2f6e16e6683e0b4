"""The checks of the controller: to add one, write its class and put it into this tuple."""

from .actuator_motion import EndStopCheck
from .clock import ClockCheck, EmergencyStopCheck, OverrunCheck
from .momentum import MomentumCheck
from .oil_flow import FlowCheck, ForceCheck
from .openings import OpeningCheck
from .passive_joints import PassiveJointCheck
from .pressures import PressureCheck
from .singularity import SingularityCheck
from .speed import SpeedCheck, StopCheck, SwingCheck
from .state import StateChecks
from .tracking import EffortCheck, RepetitionCheck, StreamCheck, TrackingCheck

# in the order of their evaluation
CHECKS = (StateChecks, PressureCheck, OverrunCheck, EmergencyStopCheck, ClockCheck, StreamCheck, SingularityCheck,
          EndStopCheck, TrackingCheck, RepetitionCheck, EffortCheck, MomentumCheck, SpeedCheck, SwingCheck,
          StopCheck, FlowCheck, OpeningCheck, ForceCheck, PassiveJointCheck)
