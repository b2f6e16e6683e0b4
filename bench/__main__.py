"""Compare our dynamics with those of Pinocchio and MuJoCo; `python -m bench --help` lists parts and options."""

import argparse
import json
import sys
import time
from pathlib import Path

from bench import plots, report, suites
from bench.effort import FULL, QUICK


def main():
    arguments = _arguments()
    out = Path(arguments.out)
    effort = QUICK if arguments.quick else FULL
    start = time.perf_counter()
    results = {'about': report.about(arguments.quick)}
    print(report.about_text(results['about']))
    for name, suite in suites.SUITES.items():
        if name in arguments.only:
            print(f'\n{suite.__doc__}\n', flush=True)
            part = time.perf_counter()
            results[name] = suite(effort)
            print(report.table(name, results[name]), f'\n({name}: {time.perf_counter() - part:.0f} s)', flush=True)
    results['targets'] = report.targets(results)
    if results['targets']:
        print('\nTargets (ratios of one interleaved run)\n\n' + report.targets_table(results['targets']))

    out.mkdir(parents=True, exist_ok=True)
    (out / 'results.json').write_text(json.dumps(results, indent=1) + '\n')
    written = ['results.json', *plots.draw(results, out)]
    print(f'\n{time.perf_counter() - start:.0f} s; written to {out}: {", ".join(written)}')
    return 0


def _arguments():
    parser = argparse.ArgumentParser(prog='python -m bench', description=__doc__)
    add = parser.add_argument
    add('--quick', action='store_true', help='fewer sizes and rounds, no cold compile: about a minute')
    add('--only', nargs='+', choices=suites.SUITES, default=list(suites.SUITES), help='some parts only')
    add('--out', default=Path(__file__).parent / 'results', help='folder of JSON and PNG')
    return parser.parse_args()


if __name__ == '__main__':
    sys.exit(main())
