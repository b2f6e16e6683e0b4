"""Policies of SROS2: their form, and that each node has what its policy allows and nothing else; the audit script."""

import runpy
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from support.paths import ROOT

FOLDER = ROOT / 'config' / 'security'
POLICIES = sorted(FOLDER.glob('*.policy.xml'))
# kind of a section -> (its children, what may be allowed); policy.xsd of sros2
SECTIONS = {'topics': ('topic', {'publish', 'subscribe'}), 'services': ('service', {'reply', 'request'}),
            'actions': ('action', {'call', 'execute'})}


def only(element, tag):
    """The one child that an element has."""
    (child,) = element
    assert child.tag == tag and not (element.text or '').strip()
    return child


def profile_of(path):
    """The profile of a policy file, after its frame has been looked at."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == 'policy' and root.attrib == {'version': '0.2.0'}
    enclave = only(only(root, 'enclaves'), 'enclave')
    name = path.name.removesuffix('.policy.xml')
    assert enclave.attrib == {'path': f'/psdyn_ros/{name}'}
    profile = only(only(enclave, 'profiles'), 'profile')
    assert profile.attrib == {'ns': '/', 'node': name}
    return profile


def allowed(path, permission):
    return {name.text for section in profile_of(path) if permission in section.attrib for name in section}


@pytest.mark.parametrize('path', POLICIES, ids=lambda path: path.name)
def test_a_policy_has_the_form_of_the_schema(path):
    for section in profile_of(path):
        child, permissions = SECTIONS[section.tag]
        assert set(section.attrib) <= permissions and set(section.attrib.values()) == {'ALLOW'}
        names = [name.text for name in section]
        assert names and names == sorted(set(names))
        assert all(name.tag == child and not len(name) for name in section)
        assert all(name.strip() == name and '//' not in name and not name.endswith('/') for name in names)


def test_every_node_has_a_policy():
    nodes = {path.name.removesuffix('.policy.xml') for path in POLICIES}
    assert nodes == set(script('security_policies')['RUNS']) >= {'simulator', 'controller', 'rig'}


@pytest.mark.parametrize('path', POLICIES, ids=lambda path: path.name)
def test_nobody_may_do_everything(path):
    """No wildcard but for the name of an actuator, no request of a service of somebody else."""
    assert not allowed(path, 'request')
    for permission in ('publish', 'subscribe', 'reply'):
        for name in allowed(path, permission):
            assert name.count('*') <= 1 and name.strip('/~') not in ('*', '')
            assert '*' not in name or name.count('/') >= 2


def test_only_the_controller_publishes_commands_and_nobody_sets_parameters():
    for path in POLICIES:
        published = {name.replace('~/', f'/{path.name.removesuffix(".policy.xml")}/')
                     for name in allowed(path, 'publish')}
        writers = {name for name in published if name in ('/controller/joint_commands', '/controller/commands')}
        assert bool(writers) == (path.name == 'controller.policy.xml')
        assert not {name for name in allowed(path, 'reply') if 'parameter' in name}


def test_the_sealed_parameters_are_those_of_the_policies():
    sealed = yaml.safe_load((FOLDER / 'sealed.yaml').read_text())['/**']['ros__parameters']
    assert sealed == {'parameter_services': False, 'start_type_description_service': False}


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
def test_each_node_has_what_its_policy_allows_and_nothing_else(tmp_path):
    pytest.importorskip('rclpy', reason='the nodes need rclpy')
    policies = script('security_policies')
    for node, endpoints in policies['observed'](policies['RUNS'], tmp_path).items():
        path = FOLDER / f'{node}.policy.xml'
        for permission, names in endpoints.items():
            assert names == allowed(path, permission), f'{node}, {permission}; run scripts/security_policies.py'


def test_a_private_a_relative_and_an_absolute_name_stay_what_they_are():
    pytest.importorskip('rclpy', reason='the script asks the graph')
    general = script('security_policies')['general']
    assert general('/run_0/rig/reset', 'rig', '/run_0') == '~/reset'
    assert general('/run_0/joint_states', 'rig', '/run_0') == 'joint_states'
    assert general('/simulator/measured/lift_cylinder', 'rig', '/run_0') == '/simulator/measured/*'


def script(name):
    return runpy.run_path(str(ROOT / 'scripts' / f'{name}.py'))


def test_the_audit_tells_vulnerable_from_unknown():
    report = {'dependencies': [
        {'name': 'good', 'version': '1', 'vulns': []}, {'name': 'unknown', 'skip_reason': 'no answer'},
        {'name': 'bad', 'version': '2', 'vulns': [{'id': 'CVE-1'}, {'id': 'CVE-2'}]}]}
    assert script('audit')['dependencies'](report) == (['bad 2: CVE-1, CVE-2'], ['unknown'], 1)


def test_the_audit_argues_by_rule_and_file():
    audit = script('audit')
    rule, file = next(iter(audit['ARGUED']))
    found = [{'filename': str(ROOT / file), 'test_id': rule, 'line_number': 3, 'issue_text': 'known'},
             {'filename': 'psdyn_ros/cli/check.py', 'test_id': rule, 'line_number': 4, 'issue_text': 'elsewhere'},
             {'filename': file, 'test_id': 'B999', 'line_number': 5, 'issue_text': 'another'}]
    assert audit['findings']({'results': found}) == (
        [f'psdyn_ros/cli/check.py:4: {rule} elsewhere', f'{file}:5: B999 another'], 1)
    assert all((ROOT / file).is_file() for _, file in audit['ARGUED'])
