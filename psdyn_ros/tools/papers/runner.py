"""`psdyn papers`: compute, print the table, write docs/reference/papers.md and its figures."""
import sys
from pathlib import Path

from tqdm import tqdm

from . import SECTIONS, alazard, loaded, page, paz, saha, wang
from .findings import FAIL, Findings

MODULES = dict(zip(SECTIONS, (paz, saha, wang, alazard, loaded)))
FOLDER = 'papers'       # of the pictures, beside the page


def compute(names=SECTIONS, quick=False, progress=True):
    """
    Return {name: (title, Findings)}.

    Each paper is a module with TITLE and STEPS, (label, function of Findings, slow); `quick` leaves slow steps out.
    """
    findings = {name: Findings() for name in names}
    steps = [(name, *step) for name in names for step in MODULES[name].STEPS if not (quick and step[-1])]
    bar = tqdm(steps, file=sys.stderr, disable=not progress, bar_format='{l_bar}{bar}| {n_fmt}/{total_fmt} {postfix}')
    for name, what, step, _ in bar:
        bar.set_postfix_str(f'{name}: {what}')
        step(findings[name])
    return {name: (MODULES[name].TITLE, found) for name, found in findings.items()}


def run(output, names=SECTIONS):
    """Write <output>/papers.md and <output>/papers/*.png, print the table; return 0, or 1 where a number is wrong."""
    folder = Path(output)
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    papers = compute(names)
    for _, findings in papers.values():
        for name, plate in findings.plates.items():
            plate.write(folder / FOLDER / f'{name}.png')
    only = '' if tuple(names) == SECTIONS else f" --only {','.join(names)}"
    (folder / 'papers.md').write_text(page.markdown(papers, f'psdyn papers{only}', FOLDER), encoding='utf-8')
    print(page.summary(papers))
    print(f"wrote {folder / 'papers.md'} and its figures")
    return int(any(entry.verdict == FAIL for _, findings in papers.values() for _, entry in findings.entries))
