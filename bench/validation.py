"""`psdyn validate` on long bags: time, processor and memory, beside a bare reading; `python -m bench.validation`.

Bags of the crane, four joints at 500 Hz and its chamber pressures: as a labelled array, with a FluidPressure topic for
each port, and padded to 10 GiB - by images on a topic of their own, and by an attachment that is a hole in the file.
Each is validated by a process of its own, with report and bag of predictions. Peak memory is that of this process,
times are those of its start too.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from psdyn_ros.api.load import load
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.model.units import SECOND
from psdyn_ros.validation.bags.mcap_chunks import ATTACHMENT, RECORD
from psdyn_ros.validation.bags.row_bag import STEM, RowBag, fluid_pressure, joint_states, labelled_array
from psdyn_ros.validation.metrics.prediction import Predictor

MACHINE = 'hiab_xs031'
BEGIN = 1_700_000_000 * SECOND
PERIOD = 0.002
MIDDLE, SWING = np.array([0.0, 0.3, 0.25, 0.4]), np.array([0.3, 0.1, 0.09, 0.2])
FREQUENCY = np.array([0.11, 0.17, 0.23, 0.13])      # Hz
RATE_NOISE, PRESSURE_NOISE, QUANTUM = 1e-3, 5e4, 1e-4
BACK = 4e6                  # Pa in the chamber of the rod
ATMOSPHERE = 101325.0
PART = 10_000               # instants that are made at once
GIB = 1 << 30
BLOB = 8 << 20              # bytes of an image
DATA_END = 15               # opcode of MCAP
TARGETS = {'array': (20.0, 400.0), 'ports': (45.0, 400.0), 'images': (None, 400.0), 'hole': (None, 400.0)}
# runs a command and prints what it used: a small process, since a child begins with the peak of its parent
LAUNCHER = '''
import os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss)
'''
READER = '''
import sys
from rosbags.rosbag2 import Reader
with Reader(sys.argv[1]) as reader:
    print(sum(len(data) for _, _, data in reader.messages()))
'''


def motion(seconds):
    """Yield (t, x, xd, efforts, pressures) of parts of a recording of the swinging crane, by plain sensors."""
    machine = load(MACHINE)
    oil = read_hydraulics(find_config(f'{MACHINE}_hydraulics.yaml'), machine.actuators)
    predictor, rng, w = Predictor(machine, oil), np.random.default_rng(0), 2.0 * np.pi * FREQUENCY
    count = round(seconds / PERIOD)
    for first in range(0, count, PART):
        t = PERIOD * np.arange(first, min(first + PART, count))
        phase = t[:, None] * w
        x, xd = MIDDLE + SWING * np.sin(phase), SWING * w * np.cos(phase)
        xdd = -SWING * w ** 2 * np.sin(phase)
        bare = predictor.mechanism.inverse_dynamics(x, xd, xdd)
        efforts = bare + predictor.friction(x, xd, xdd, xd, bare)
        pressures = np.stack([np.column_stack(((efforts[:, axis] + BACK * one.area_b) / one.area_a,
                                               np.full(len(t), BACK)))
                              for axis, one in enumerate(oil.cylinders.values(), 1)], axis=1)
        efforts[:, 1:] = 0.0
        yield (t, np.round(x / QUANTUM) * QUANTUM, xd + RATE_NOISE * rng.standard_normal(xd.shape), efforts,
               pressures + PRESSURE_NOISE * rng.standard_normal(pressures.shape))


def write_array_bag(path, seconds):
    """A bag with pressures as a labelled array."""
    machine = load(MACHINE)
    cylinders = tuple(read_hydraulics(find_config(f'{MACHINE}_hydraulics.yaml'), machine.actuators).cylinders)
    topics = {'/joint_states': joint_states(machine.actuators),
              '/hydraulics': labelled_array(cylinders, ('pressure_a', 'pressure_b', 'stamp'))}
    with RowBag(path, topics) as bag:
        for t, x, xd, efforts, pressures in motion(seconds):
            ns = _stamps(t)
            table = np.concatenate((pressures, np.broadcast_to(ns[:, None, None] / SECOND,
                                                               (*pressures.shape[:2], 1))), axis=2)
            bag.write(ns, {'/joint_states': (x, xd, efforts), '/hydraulics': (table.reshape(len(t), -1),)})
    return path


def write_ports_bag(path, seconds):
    """A bag with a FluidPressure topic for each port."""
    machine = load(MACHINE)
    cylinders = tuple(read_hydraulics(find_config(f'{MACHINE}_hydraulics.yaml'), machine.actuators).cylinders)
    ports = [(f'/{name}/pressure_{port}', row, column) for row, name in enumerate(cylinders)
             for column, port in enumerate('ab')]
    topics = {'/joint_states': joint_states(machine.actuators), **{topic: fluid_pressure() for topic, _, _ in ports}}
    with RowBag(path, topics) as bag:
        for t, x, xd, efforts, pressures in motion(seconds):
            values = {topic: (ATMOSPHERE + pressures[:, row, column][:, None],) for topic, row, column in ports}
            bag.write(_stamps(t), {'/joint_states': (x, xd, efforts), **values})
    return path


def write_image_bag(path, seconds, size):
    """A bag padded to `size` bytes by images that are all black: chunks that compress well."""
    from mcap.writer import CompressionType, Writer
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore

    source = write_array_bag(path.with_name(f'{path.name}_plain'), seconds)
    store = get_typestore(Stores.ROS2_JAZZY)
    t = store.types
    image = t['sensor_msgs/msg/CompressedImage'](
        header=t['std_msgs/msg/Header'](stamp=t['builtin_interfaces/msg/Time'](sec=0, nanosec=0), frame_id=''),
        format='raw', data=np.zeros(BLOB, dtype=np.uint8))
    blob = bytes(store.serialize_cdr(image, image.__msgtype__))
    path.mkdir()
    with (path / f'{STEM}.mcap').open('wb') as file, Reader(source) as reader:
        writer = Writer(file, chunk_size=1 << 20, compression=CompressionType.ZSTD)
        writer.start(profile='ros2', library='')
        channels = {one.topic: (one.msgtype, writer.register_channel(one.topic, 'cdr', writer.register_schema(
            one.msgtype, 'ros2msg', one.msgdef.data.encode()))) for one in reader.connections}
        camera = writer.register_channel('/camera', 'cdr', writer.register_schema(
            image.__msgtype__, 'ros2msg', store.generate_msgdef(image.__msgtype__, ros_version=2)[0].encode()))
        every = max(reader.message_count * BLOB // size, 1)
        for number, (connection, when, data) in enumerate(reader.messages()):
            writer.add_message(channels[connection.topic][1], when, data, when)
            if number % every == 0:
                writer.add_message(camera, when, blob, when)
        writer.finish()
    return path / f'{STEM}.mcap'


def write_hole_bag(path, seconds, size):
    """A bag padded to `size` bytes by an attachment, which is a hole in the file."""
    source = write_array_bag(path.with_name(f'{path.name}_plain'), seconds) / f'{STEM}.mcap'
    data = source.read_bytes()
    # before the record that ends the data: nothing that the summary points at moves
    footer = len(data) - 8 - RECORD.size - 20
    _, _, start, offsets, crc = struct.unpack('<BQQQI', data[footer:footer + RECORD.size + 20])
    end = start - RECORD.size - 4
    assert data[end] == DATA_END
    # times, name and type, and the length of what is attached; its checksum is 0, which says that there is none
    name = struct.pack('<I', 5) + b'video'
    head = struct.pack('<QQ', BEGIN, BEGIN) + name + name + struct.pack('<Q', size)
    moved = RECORD.size + len(head) + size + 4
    with path.open('wb') as file:
        file.write(data[:end] + RECORD.pack(ATTACHMENT, moved - RECORD.size) + head)
        file.seek(size + 4, os.SEEK_CUR)
        summary = bytearray(data[end:footer])
        # offsets to parts of the summary are no use any more; the footer says so by 0
        file.write(summary[:offsets - end] + RECORD.pack(data[footer], 20)
                   + struct.pack('<QQI', start + moved, 0, crc) + data[-8:])
    return path


def run(command):
    """{'wall', 'cpu' [s], 'memory' [MB]} of a process; RuntimeError where it fails."""
    done = subprocess.run([sys.executable, '-S', '-c', LAUNCHER, *map(str, command)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    code, wall, cpu, memory = done.stdout.split()
    if int(code) not in (0, 1, 3):
        raise RuntimeError(f'{command[0]} ended with {code}: {done.stderr}')
    return {'exit_code': int(code), 'wall': float(wall), 'cpu': float(cpu), 'memory': float(memory) * 1024 / 1e6}


def measure(name, bag, output, bare=True):
    """Figures of one bag."""
    validate = [sys.executable, '-m', 'psdyn_ros.cli', 'validate', bag, '--urdf', MACHINE, '--output', output]
    found = {'bag': name, 'bytes': _size(bag), 'validate': run(validate)}
    if bare:
        found['rosbags'] = run([sys.executable, '-c', READER, bag])
        found['ratio'] = found['validate']['wall'] / found['rosbags']['wall']
    return found


def table(results):
    """Markdown."""
    lines = ['| bag | size | wall | cpu | peak memory | bare rosbags | ratio | target |', f'|{"---|" * 8}']
    for one in results:
        used, bare = one['validate'], one.get('rosbags')
        wall, memory = TARGETS[one['bag']]
        met = used['memory'] <= memory and (wall is None or used['wall'] <= wall)
        cells = (one['bag'], f'{one["bytes"] / 1e6:,.0f} MB', f'{used["wall"]:.1f} s', f'{used["cpu"]:.1f} s',
                 f'{used["memory"]:.0f} MB', f'{bare["wall"]:.1f} s' if bare else '',
                 f'{one["ratio"]:.2f}' if bare else '',
                 (f'{wall:.0f} s, ' if wall else '') + f'{memory:.0f} MB: {"met" if met else "MISSED"}')
        lines.append(f'| {" | ".join(cells)} |')
    return '\n'.join(lines)


def main(arguments=None):
    """Make the bags, measure, print; returns 0."""
    parser = argparse.ArgumentParser(prog='python -m bench.validation', description=__doc__.split('\n')[0])
    parser.add_argument('--seconds', type=float, default=600.0, help='of the recordings (600)')
    parser.add_argument('--size', type=float, default=10.0, metavar='GIB', help='of the padded bags (10)')
    parser.add_argument('--only', nargs='+', choices=TARGETS, default=list(TARGETS))
    parser.add_argument('--json', metavar='FILE', help='all figures')
    options = parser.parse_args(arguments)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        folder, size = Path(folder), round(options.size * GIB)
        makers = {'array': lambda path: write_array_bag(path, options.seconds),
                  'ports': lambda path: write_ports_bag(path, options.seconds),
                  'images': lambda path: write_image_bag(path, min(options.seconds, 60.0), size),
                  'hole': lambda path: write_hole_bag(path.with_suffix('.mcap'), min(options.seconds, 60.0), size)}
        # compiles and loads what every run needs
        warm = write_array_bag(folder / 'warm', 10.0)
        run([sys.executable, '-m', 'psdyn_ros.cli', 'validate', warm, '--urdf', MACHINE])
        for name in options.only:
            bag = makers[name](folder / name)
            results.append(measure(name, bag, folder / f'{name}_report', bare=name in ('array', 'ports')))
            print(table(results[-1:]).splitlines()[-1], flush=True)
    print(f'\n{table(results)}')
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + '\n')
    return 0


def _stamps(t):
    return BEGIN + np.rint(t * SECOND).astype(np.int64)


def _size(bag):
    return sum(file.stat().st_size for file in bag.iterdir()) if bag.is_dir() else bag.stat().st_size


if __name__ == '__main__':
    sys.exit(main())
