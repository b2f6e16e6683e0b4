"""A kind of sensor of one's own, a row in two files: files of sensors and faults, readings and bags have it."""

import json

import numpy as np
import pytest
from support.edited_copy import edited_copy, run
from support.machines import URDF

import psdyn_ros

# what a developer adds: what it measures; and how a plant is read, with the message
EDITS = {
    'model/parameters/sensors.py': [
        ("KINDS = {\n", "KINDS = {\n    'link_velocity': ChannelKind('m/s', 'xyz', 'doppler', link=True),\n")],
    'simulation/sensors/kinds.py': [
        ("KINDS = {\n", "KINDS = {\n    'link_velocity': Kind(lambda plant: plant.manipulator.links,\n"
         "        lambda truth, names: [truth.link(name)[0][:3] for name in names], 'twist.linear'),\n"),
        ("MESSAGES = {", "MESSAGES = {'doppler': Message('geometry_msgs/msg/TwistStamped'), ")]}
SCRIPT = '''
import json
import sys
from pathlib import Path

import numpy as np
from rosbags.highlevel import AnyReader

import psdyn_ros
from psdyn_ros.model.parameters.faults import read_fault
from psdyn_ros.model.parameters.sensors import read_sensors
from psdyn_ros.simulation.faults import FaultInjector
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.simulation.sensors.kinds import channels_of, mountable
from psdyn_ros.simulation.sensors.plant_sensors import PlantSensors
from psdyn_ros.validation.bags.simulated_bag import SimulatedBag

urdf, bag = sys.argv[1:]
plant = Plant(psdyn_ros.load(urdf), period=0.01)
text = 'mounted: {doppler: [telescope_link]}\\ndefault: {link_velocity: {bias: 0.5}}\\n'
sensors = PlantSensors(plant, read_sensors(text, channels_of(plant), mountable=mountable(plant)), 0)
faults = FaultInjector(sensors.bank, plant)
faults.inject(read_fault('{kind: bias, target: telescope_link.link_velocity_x, value: 2.0}'))
faults.update(plant.time)
for _ in range(30):
    plant.step(np.array([3e3, 0.0, 0.0, 0.0]), 0.01)
sensors.sample(plant)
readings = sensors.readings()
with SimulatedBag(Path(bag), (), sensors.mounted) as written:
    written.write(plant, readings, readings)
with AnyReader([Path(bag)]) as reader:
    (message,) = [reader.deserialize(data, one.msgtype) for one, _, data in reader.messages()
                  if one.topic == '/simulator/doppler/telescope_link']
v = message.twist.linear
print(json.dumps({'x': plant.x.tolist(), 'xd': plant.xd.tolist(), 'frame': message.header.frame_id,
                  'read': np.asarray(readings.mounted['link_velocity', 'telescope_link']).tolist(),
                  'recorded': [v.x, v.y, v.z]}))
'''


@pytest.mark.long
def test_a_sensor_of_ones_own_is_in_files_faults_readings_and_bags(tmp_path):
    urdf = URDF / 'hiab_xs031.urdf'
    out = run(edited_copy(tmp_path / 'copy', EDITS), SCRIPT, urdf, tmp_path / 'bag')
    found = json.loads(out.splitlines()[-1])
    crane = psdyn_ros.load(urdf)
    twist, _ = crane.link_motion(np.array(found['x']), np.array(found['xd']), np.zeros(4), 'telescope_link')
    assert np.abs(twist[:3]).max() > 0.01 and found['frame'] == 'telescope_link'
    assert found['read'] == pytest.approx(twist[:3] + [2.5, 0.5, 0.5], abs=1e-12)
    assert found['recorded'] == pytest.approx(found['read'])
