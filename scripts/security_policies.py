#!/usr/bin/env python3
"""Write config/security/*.policy.xml: to each node exactly the topics and services that it has while it runs.

Every node runs as a process, wired as the launch files wire it, with whatever makes it open more; the union of what
the graph shows of it is its policy. Names of cylinders become `*`, so that a policy fits any machine.

`--check` writes nothing and ends with 1 where a file differs.
"""

import argparse
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import rclpy
from rclpy.signals import SignalHandlerOptions

from psdyn_ros import load
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.nodes import EXECUTABLES
from psdyn_ros.tools.demo.processes import NodeProcesses, environment, exported, free_domain

FOLDER = Path(__file__).resolve().parent.parent / 'config' / 'security'
VERSION = '0.2.0'           # of the policy schema of sros2
START_UP = 300.0            # s; a first run compiles
SETTLED = 3.0               # s without a change of the graph after which it is complete
MODEL = ('-p', f'robot_description:={find_machine("hiab_xs031")}')
CRANE = (*MODEL, '-p', f'hydraulics:={find_config("hiab_xs031_hydraulics.yaml")}')
# a managed node opens its topics when it is configured
CONTROLLED = ('-p', 'law:=valve_computed_torque', '-p', f'safety:={find_config("hiab_xs031_safety.yaml")}',
              '-p', 'autostart:=true')
FLOATING = ('-p', f'robot_description:={find_machine("balloon")}', '-p', 'allow_unphysical:=true')
SEALED = ('--params-file', str(FOLDER / 'sealed.yaml'))
SIMULATED_TIME = ('-p', 'use_sim_time:=true')
ACTUATORS = load('hiab_xs031').actuators
COMMANDS = '/controller/joint_commands'
ON_RIG = 'lift_cylinder'
# node -> arguments of each of its runs
RUNS = {
    'simulator': (
        (*CRANE, '-p', 'publish_clock:=true', '-p', 'publish_fluid_pressure:=true', '-p', 'tool_link:=tcp',
         '-r', f'~/joint_commands:={COMMANDS}'),
        (*FLOATING, '-p', 'tool_link:=balloon', '-r', f'~/joint_commands:={COMMANDS}')),
    'controller': (
        (*CRANE, *SIMULATED_TIME, *CONTROLLED),
        (*CRANE, *SIMULATED_TIME, *CONTROLLED, '-p', 'pressure_source:=ports')),
    'loop_state': (
        (*CRANE, *SIMULATED_TIME, '-p', 'effort_source:=pressures'),
        (*CRANE, *SIMULATED_TIME, '-p', 'effort_source:=pressures', '-p', 'pressure_source:=ports')),
    'feedforward': ((*MODEL, *SIMULATED_TIME, '-p', 'publish_terms:=true'),),
    'annotator': ((*MODEL, *SIMULATED_TIME),),
    'planner': ((*CRANE, *SIMULATED_TIME, '-p', 'link:=tcp'),),
    'validator': (
        (*CRANE, *SIMULATED_TIME),
        (*CRANE, *SIMULATED_TIME, '-p', 'pressure_source:=ports')),
    'rig': tuple(
        (*CRANE, *SIMULATED_TIME, '-p', f'cylinder:={ON_RIG}', '-p', f'measures:={measures}',
         '-r', f'~/valve_commands:={COMMANDS}', '-r', f'~/load_motion:=/simulator/load_motion/{ON_RIG}',
         '-r', f'~/measured:=/simulator/measured/{ON_RIG}',
         '-r', f'~/measured_pressures:=/simulator/measured_pressures/{ON_RIG}')
        for measures in ('force', 'pressures')),
}
# attributes of a section, in the order in which they are written
SECTIONS = (('topics', 'publish'), ('topics', 'subscribe'), ('services', 'reply'), ('services', 'request'))


def observed(runs, folder):
    """Return {node: {permission: set of names}}: the union of what the nodes of these runs have.

    runs    {node: (arguments of a run, ...)}; all go together, each in a namespace of its own
    folder  for their logs
    """
    found = {node: {permission: set() for _, permission in SECTIONS} for node in runs}
    with exported(environment(free_domain(), folder)), NodeProcesses(folder) as processes:
        names = [(node, f'/run_{number}') for node, arguments in runs.items() for number in range(len(arguments))]
        for node, namespace in names:
            arguments = runs[node][int(namespace.rpartition('_')[2])]
            processes.start(f'{namespace[1:]}_{node}', EXECUTABLES[node], '--ros-args', *SEALED,
                            '-r', f'__ns:={namespace}', *arguments)
        for (node, _), endpoints in _seen(names, processes).items():
            for permission, topics in endpoints.items():
                found[node][permission] |= topics
    return found


def _seen(names, processes):
    """{(node, namespace): {permission: names}} of the nodes that run, once the graph no longer changes."""
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    witness = rclpy.create_node('policy_witness', context=context)
    try:
        deadline, last, since = time.monotonic() + START_UP, None, time.monotonic()
        while True:
            present = set(witness.get_node_names_and_namespaces())
            seen = {node: _endpoints(witness, *node) for node in names if node in present}
            if seen != last:
                last, since = seen, time.monotonic()
            # every node has something of its own beside what rclpy opens, when it is complete
            if len(seen) == len(names) and time.monotonic() - since > SETTLED \
                    and all(len(endpoints['subscribe']) > 1 for endpoints in seen.values()):
                return seen
            if processes.ended() or time.monotonic() > deadline:
                words = '\n'.join(processes.log(name).read_text() for name in processes.names())
                raise RuntimeError(f'{", ".join(processes.ended()) or "nodes"} did not come up:\n{words}')
            time.sleep(0.05)
    finally:
        witness.destroy_node()
        rclpy.try_shutdown(context=context)


def _endpoints(witness, node, namespace):
    ask = {'publish': witness.get_publisher_names_and_types_by_node,
           'subscribe': witness.get_subscriber_names_and_types_by_node,
           'reply': witness.get_service_names_and_types_by_node,
           'request': witness.get_client_names_and_types_by_node}
    return {permission: {general(name, node, namespace) for name, _ in names_and_types(node, namespace)}
            for permission, names_and_types in ask.items()}


def general(name, node, namespace):
    """Return a name of the graph as a policy has it: private or relative where it is, `*` for an actuator."""
    name = '/'.join('*' if part in ACTUATORS else part for part in name.split('/'))
    for prefix, replacement in ((f'{namespace}/{node}/', '~/'), (f'{namespace}/', '')):
        if name.startswith(prefix):
            return replacement + name.removeprefix(prefix)
    return name


def policy(node, endpoints):
    """Return the text of the policy file of a node; endpoints {permission: names}."""
    root = ElementTree.Element('policy', version=VERSION)
    enclave = ElementTree.SubElement(ElementTree.SubElement(root, 'enclaves'), 'enclave', path=f'/psdyn_ros/{node}')
    profile = ElementTree.SubElement(ElementTree.SubElement(enclave, 'profiles'), 'profile', ns='/', node=node)
    for kind, permission in SECTIONS:
        if endpoints[permission]:
            section = ElementTree.SubElement(profile, kind, {permission: 'ALLOW'})
            for name in sorted(endpoints[permission]):
                ElementTree.SubElement(section, kind.removesuffix('s')).text = name
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def main():
    """Write or check the files; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--check', action='store_true', help='write nothing, end with 1 where a file differs')
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        found = observed(RUNS, folder)
    differing = []
    for node, endpoints in found.items():
        path, text = FOLDER / f'{node}.policy.xml', policy(node, endpoints)
        if not path.is_file() or path.read_text() != text:
            differing.append(node)
            if not check:
                path.write_text(text)
        print(f'{node}: ' + ', '.join(f'{len(names)} {permission}' for permission, names in endpoints.items()))
    print(f'{"differ" if check else "written"}: {", ".join(differing) or "none"}')
    return int(check and bool(differing))


if __name__ == '__main__':
    sys.exit(main())
