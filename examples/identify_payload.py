"""What does the crane carry?  70 kg that the model does not know are found from a bag with pressures."""
from math import pi, sin
from pathlib import Path

from psdyn_ros.model.locate import find_machine, machine_config
from psdyn_ros.validation.identify import identify_bag
from psdyn_ros.validation.simulated_run import Run, simulate_into_bag

load = '''<link name="load"><inertial><mass value="70"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="weld" type="fixed"><parent link="tcp"/><child link="load"/></joint></robot>'''
Path('loaded.urdf').write_text(Path(find_machine('hiab_xs031')).read_text().replace('</robot>', load))

# valves open and close slowly, each at a rhythm of its own
openings = [[0.05 * k, *(0.35 * sin(2 * pi * 0.05 * k / period) for period in (7.0, 5.0, 6.0))] for k in range(800)]
lines = [','.join(map(str, row)) for row in openings]
Path('commands.csv').write_text('\n'.join(['time,lift_cylinder,tilt_cylinder,telescope', *lines]))
oil = machine_config('hiab_xs031', 'hydraulics')
simulate_into_bag('loaded.urdf', 'commands.csv', 'loaded', Run(hydraulics=oil), quiet=True)

found, *_ = identify_bag('loaded', 'hiab_xs031', payload_link='tcp')
print(found.text)
assert abs(found.bodies[0].found.mass - 70.0) < 5.0
