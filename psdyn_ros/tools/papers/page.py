"""Tables for the terminal and docs/reference/papers.md."""
from pathlib import Path

import jinja2
import numpy as np

from .findings import EXPLAINED, FAIL, PASS

TEMPLATES = Path(__file__).parent / 'templates'
HEADER = ('quantity', 'ours', 'paper or reference', 'source', 'difference', 'verdict')
MAX_CELL = 44    # characters of a cell in the terminal


def row_of(entry):
    """Return the cells of an `Entry` as text."""
    difference = '' if np.isnan(entry.difference) else f'{entry.difference:.0e}'
    bound = f' (bound {entry.bound:.0e})' if entry.bound is not None and (entry.error or entry.verdict == FAIL) else ''
    return (entry.quantity, entry.text(entry.ours), entry.text(entry.reference), entry.source, difference,
            entry.verdict + bound)


def summary(papers):
    """Return the table of all papers, {name: (title, Findings)}, as aligned text."""
    lines = []
    for title, findings in papers.values():
        rows = [HEADER] + [row_of(entry) for _, entry in findings.entries]
        rows = [[cell if len(cell) <= MAX_CELL or i == 0 else cell[:MAX_CELL - 3] + '...' for i, cell in enumerate(row)]
                for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines += [title, *('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows),
                  '']
    verdicts = [entry.verdict for _, findings in papers.values() for _, entry in findings.entries]
    lines.append(f'{verdicts.count(PASS)} {PASS}, {verdicts.count(EXPLAINED)} {EXPLAINED} (differ for a known reason), '
                 f'{verdicts.count(FAIL)} {FAIL}')
    return '\n'.join(lines)


def markdown(papers, command, folder):
    """Return the page; `folder` is where its pictures are, seen from it."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), undefined=jinja2.StrictUndefined,
                                     trim_blocks=True, lstrip_blocks=True, autoescape=False)
    sections = [environment.get_template(f'{name}.md.j2').render(title=title, **_words(findings, folder))
                for name, (title, findings) in papers.items()]
    counts = [entry.verdict for _, findings in papers.values() for _, entry in findings.entries]
    return environment.get_template('page.md.j2').render(
        command=command, sections=sections, ok=counts.count(PASS), explained=counts.count(EXPLAINED),
        failed=counts.count(FAIL)).rstrip() + '\n'


def _words(findings, folder):
    """Return what a template may say: table(name), picture(name), value(table, quantity)."""
    def table(name):
        rows = [HEADER, ('---',) * len(HEADER), *map(row_of, findings.tables[name])]
        return '\n'.join('| ' + ' | '.join(cell.replace('|', '\\|') for cell in row) + ' |' for row in rows)

    def picture(name):
        return f'![{findings.plates[name].title}]({folder}/{name}.png)\n\n*{findings.plates[name].title}*'

    def value(name, quantity):
        entry = next(entry for entry in findings.tables[name] if entry.quantity == quantity)
        return entry.text(entry.ours)
    return {'table': table, 'picture': picture, 'value': value}
