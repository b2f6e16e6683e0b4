"""Write the crane whose <ros2_control> commands valves, urdf/ros2_control/hiab_xs031_valves.urdf.

`python scripts/valve_urdf.py` writes what is urdf/hiab_xs031.urdf but for two things.  The cylinders leave
the block of the efforts for one of their own, whose position commands are spool positions from -1 to 1.  And joint
limits do not hold for these commands, since controller_manager would take them for strokes.
"""

import re
from pathlib import Path

URDF = Path(__file__).resolve().parent.parent / 'urdf'
CRANE = URDF / 'hiab_xs031.urdf'
VALVES = URDF / 'ros2_control' / 'hiab_xs031_valves.urdf'
CYLINDERS = ('lift_cylinder', 'tilt_cylinder', 'telescope')
BLOCK = '''
  <!-- Written by scripts/valve_urdf.py. Position commands of these joints are spool positions, -1 to 1; their position
       states are strokes in m. -->
  <ros2_control name="hiab_xs031_valves" type="system">
    <hardware>
      <plugin>joint_state_topic_hardware_interface/JointStateTopicSystem</plugin>
      <param name="joint_commands_topic">/hiab_xs031/valve_commands</param>
      <param name="joint_states_topic">/hiab_xs031/joint_states</param>
      <param name="trigger_joint_command_threshold">-1</param>
    </hardware>
{joints}
  </ros2_control>
'''


def with_valves(text):
    """Return the URDF text of the crane with its cylinders in a block of valves."""
    joints = []
    for name in CYLINDERS:
        (joint,) = re.findall(rf'    <joint name="{name}">\n      <command_interface.*?</joint>\n', text, re.DOTALL)
        text = text.replace(joint, '')
        effort, valve = '<command_interface name="effort"/>', '<command_interface name="position"/>'
        joints.append(joint.rstrip('\n').replace(effort, f'<limits enable="false"/>\n      {valve}'))
    end = '  </ros2_control>\n'
    return text.replace(end, end + BLOCK.format(joints='\n'.join(joints)), 1)


if __name__ == '__main__':
    VALVES.write_text(with_valves(CRANE.read_text()))
    print(VALVES)
