"""What the commands of studies that write a page share: options, processes, and how they end."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tqdm import tqdm


def study_parser(study, description, short):
    """Return the parser of a study; short: what its short version leaves."""
    parser = argparse.ArgumentParser(prog=f'python3 -m psdyn_ros.tools.studies.{study}',
                                     description=description.split('\n')[0])
    parser.add_argument('--output', default='docs/reference', help='folder of the page (default: %(default)s)')
    parser.add_argument('--short', action='store_true', help=short)
    parser.add_argument('--processes', type=int, default=2, help='that compute side by side (default: %(default)s)')
    return parser


def run_table(run, table, processes, what):
    """Return {key: [run(case)]} of {key: [case]}."""
    flat = [(key, case) for key, row in table.items() for case in row]
    results = {key: [] for key in table}
    with ProcessPoolExecutor(processes) as pool:
        outcomes = pool.map(run, [case for _, case in flat])
        for (key, _), outcome in tqdm(zip(flat, outcomes), total=len(flat), file=sys.stderr, desc=what, unit='run'):
            results[key].append(outcome)
    return results


def finish(folder, name, text, missed):
    """Write the page and print it, and each bound that is missed; return the exit code."""
    Path(folder, name).write_text(text, encoding='utf-8')
    print(text)
    for row in missed:
        print(f'MISSED: {row}', file=sys.stderr)
    return int(bool(missed))
