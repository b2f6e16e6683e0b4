"""What a first URDF or YAML file gets wrong: the message has the file, the place, and advice that fits."""

import re

import pytest
from support.one_loop import one_loop
from support.paths import ROOT

import psdyn_ros
from psdyn_ros import AssemblyModeError, ModelError, XmlError
from psdyn_ros.model.troubleshooting import ERRORS
from psdyn_ros.model.yaml_file import open_declaration, plain_contents

XML = one_loop().xml
FOUR_BAR = (ROOT / 'urdf' / 'four_bar.urdf').read_text()


def test_an_xml_error_names_its_file(tmp_path):
    path = tmp_path / 'empty.urdf'
    path.write_text('')
    with pytest.raises(XmlError, match=f"^'{re.escape(str(path))}': not well-formed XML: no element found"):
        psdyn_ros.load(path)


def test_a_yaml_error_names_its_file_and_no_stream(tmp_path):
    path = tmp_path / 'oil.yaml'
    path.write_text('a: 1\nb: [\n')
    for read in (lambda: open_declaration('hydraulics', path),
                 lambda: plain_contents(f"hydraulics file '{path}'", path.read_text())):
        with pytest.raises(ModelError, match=r"(?s)oil.yaml' is not YAML: .* line \d") as caught:
            read()
        assert 'string>' not in str(caught.value)


def test_advice_fits_keys_of_yaml_and_missing_actuators():
    assert 'key' in ERRORS['DuplicateNameError'] and 'link' not in ERRORS['DuplicateNameError']
    assert ERRORS['ActuationError'].startswith('Where a file lacks an actuator, add it there.')


@pytest.mark.parametrize('encoding', ['ISO-8859-1', 'windows-1252'])
def test_a_declared_encoding_of_one_byte_is_read(tmp_path, encoding):
    path = tmp_path / 'm.urdf'
    text = f'<?xml version="1.0" encoding="{encoding}"?><!-- Löffel -->{XML.split("?>")[-1]}'
    path.write_bytes(text.encode(encoding))
    assert psdyn_ros.load(path).name == psdyn_ros.load(XML).name


def test_text_in_no_known_encoding_is_refused_with_its_line(tmp_path):
    path = tmp_path / 'm.urdf'
    path.write_bytes('<?xml version="1.0"?>\n\n<!-- Löffel -->'.encode('latin-1') + XML.split('?>')[-1].encode())
    with pytest.raises(ModelError, match='is not UTF-8 text: line 3 has the byte 0xf6; save it as UTF-8'):
        psdyn_ros.load(path)


def test_limits_that_only_degrees_have_are_doubted():
    doubt = r"limits -180 to 180 rad are beyond three turns; are they in degrees\?"
    warnings = psdyn_ros.load(one_loop(limits={'boom': (-180, 180)}).xml).machine.warnings
    assert any(re.search(f"joint 'boom' .*{doubt}", warning) for warning in warnings)
    with pytest.raises(AssemblyModeError, match=doubt):
        psdyn_ros.load(one_loop(initial=(), limits={'boom': (-180, 180)}).xml)
    assert not psdyn_ros.load(one_loop(limits={'boom': (-14, 14)}).xml).machine.warnings


def test_an_inertia_in_other_units_is_warned_of_with_both_lengths():
    gross, count = re.subn('(i[xyz]{2})="([^"]+)"', lambda found: f'{found[1]}="{float(found[2]) * 1e6:.9g}"', FOUR_BAR)
    assert count
    told = [warning for warning in psdyn_ros.load(gross).machine.warnings if 'radius of gyration' in warning]
    assert told and re.fullmatch(r"link '\w+' \(line \d+\): its radius of gyration is [\d.]+ m in a machine of at most "
                                 r'[\d.]+ m; expected inertias in kg m\^2', told[0])


def test_an_interface_that_is_nearly_effort_is_warned_of():
    typo = FOUR_BAR.replace('command_interface name="effort"/>', 'command_interface name="efort"/>')
    warning, = psdyn_ros.load(typo).machine.warnings
    expected = r"""line \d+: <command_interface name="efort"> is not known; did you mean 'effort'\?"""
    assert re.fullmatch(expected, warning)
    assert not psdyn_ros.load(FOUR_BAR.replace('"effort"/>', '"pump_pressure"/>')).machine.warnings
