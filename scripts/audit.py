#!/usr/bin/env python3
"""Audit: known vulnerabilities of what requirements/run.txt pins (pip-audit), and our own code (bandit).

Needs requirements/audit.txt. Ends with 0 where everything was looked at and nothing found, 1 where something was
found, 3 where a package could not be looked up or a tool is missing: that is no clean audit.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / 'requirements' / 'run.txt'
CLEAN, FOUND, UNKNOWN = 0, 1, 3
# (rule, file) of bandit -> why it is none
ARGUED = {
    ('B701', 'psdyn_ros/tools/papers/page.py'): 'writes Markdown from our own templates; nothing of it is HTML',
    ('B603', 'psdyn_ros/tools/demo/processes.py'): 'a list of arguments without a shell, of modules of this package',
    ('B404', 'psdyn_ros/tools/demo/processes.py'): 'as B603',
    ('B404', 'psdyn_ros/tools/timing/cyclictest.py'): 'as in processes.py',
    ('B603', 'psdyn_ros/tools/timing/cyclictest.py'): 'a list of arguments without a shell, numbers only',
    ('B405', 'psdyn_ros/tools/studies/tracking_runs.py'): 'reads a machine of the package',
    ('B314', 'psdyn_ros/tools/studies/tracking_runs.py'): 'reads a machine of the package',
    ('B506', 'psdyn_ros/validation/bags/files.py'): 'a loader of safe types only',
    ('B110', 'psdyn_ros/validation/bags/bulk_decoder.py'): 'the message is then read in the checked way',
    ('B405', 'psdyn_ros/model/mechanism/xml_reader.py'): 'the element class only; texts are parsed by defusedxml',
}


def dependencies(report):
    """Return (vulnerable, unknown, clean) of a report of pip-audit: texts, and how many are clean.

    report  the parsed JSON
    """
    vulnerable, unknown, clean = [], [], 0
    for package in report['dependencies']:
        if 'skip_reason' in package:
            unknown.append(package['name'])
        elif package['vulns']:
            vulnerable.append(f'{package["name"]} {package["version"]}: '
                              + ', '.join(vulnerability['id'] for vulnerability in package['vulns']))
        else:
            clean += 1
    return vulnerable, unknown, clean


def findings(report):
    """Return (findings, argued) of a report of bandit: texts, and how many `ARGUED` explains.

    report  the parsed JSON
    """
    open_, argued = [], 0
    for one in report['results']:
        where = one['filename'].removeprefix(f'{ROOT}/')
        if (one['test_id'], where) in ARGUED:
            argued += 1
        else:
            open_.append(f'{where}:{one["line_number"]}: {one["test_id"]} {one["issue_text"]}')
    return open_, argued


def _run(module, *arguments):
    """The JSON that a tool printed; None where it printed none, with its last line on stderr."""
    run = subprocess.run([sys.executable, '-m', module, *arguments], cwd=ROOT, capture_output=True, text=True)
    try:
        return json.loads(run.stdout)
    except ValueError:
        lines = run.stderr.strip().splitlines() or ['no output']
        print(f'{module}: {lines[-1]}', file=sys.stderr)
        return None


def main():
    """Run both and print what they found; returns the exit code."""
    code = CLEAN
    report = _run('pip_audit', '--requirement', str(REQUIREMENTS), '--no-deps', '--format', 'json',
                  '--progress-spinner', 'off')
    if report is None:
        code = UNKNOWN
    else:
        vulnerable, unknown, clean = dependencies(report)
        print(f'dependencies: {clean} without known vulnerabilities, {len(vulnerable)} with, '
              f'{len(unknown)} that could not be looked up')
        print(''.join(f'  {line}\n' for line in vulnerable), end='')
        if unknown:
            print(f'  not looked up, the vulnerability database does not answer for: {", ".join(unknown)}')
        code = FOUND if vulnerable else UNKNOWN if unknown else CLEAN
    report = _run('bandit', '--quiet', '--recursive', 'psdyn_ros', '--format', 'json')
    if report is None:
        return code or UNKNOWN
    open_, argued = findings(report)
    print(f'own code: {len(open_)} findings, {argued} argued in this script')
    print(''.join(f'  {line}\n' for line in open_), end='')
    return FOUND if open_ else code


if __name__ == '__main__':
    sys.exit(main())
