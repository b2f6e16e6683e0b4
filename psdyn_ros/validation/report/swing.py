"""The swing of a hanging load in a report: figures, table and picture."""

from typing import NamedTuple

import numpy as np

from .figure_style import BLACK, BLUE, VERMILLION, finish, note, panels

LEFT = 0.2      # share of the swing without a shaper that may be left with one; slewing by 0.8 rad leaves a tenth
MIN_REST_S = 0.5    # shorter, a reference turns round
COLORS = BLUE, VERMILLION


class Swing(NamedTuple):
    """How a load swung in a run."""

    run: str
    joints: tuple
    """(passive,) names, all of which turn."""
    time: np.ndarray
    """(N,) s since the first motion."""
    moving: np.ndarray
    """(N,) whether the reference moves."""
    deviation: np.ndarray
    """(N, passive) rad from where the load would hang at rest."""

    @property
    def largest(self):
        """(passive,) rad, while the reference moves."""
        return np.abs(self.deviation[self.moving]).max(axis=0)

    @property
    def rests(self):
        """List of slices of the rows at which the reference stands still after a motion, for MIN_REST_S at least."""
        edges = np.diff(np.concatenate((self.moving, [True])).astype(int))
        begins, ends = np.flatnonzero(edges < 0) + 1, np.flatnonzero(edges > 0) + 1
        found = [slice(begin, ends[ends > begin][0]) for begin in begins]
        return [one for one in found if self.time[one.stop - 1] - self.time[one.start] >= MIN_REST_S]

    @property
    def residual(self):
        """(passive,) rad, largest in all rests; NaN where there are none."""
        rests = [np.abs(self.deviation[rest]).max(axis=0) for rest in self.rests]
        return np.max(rests, axis=0) if rests else np.full(len(self.joints), np.nan)


def share_left(swings):
    """Return the residual swing of the first run over that of the second, each of the joint that swings most.

    A load that is not at rest when the next motion begins swings by what all of them leave.
    """
    return float(swings[0].residual.max() / swings[1].residual.max())


def reason(swings):
    """Return why runs with and without a shaper fail, '' where they do not or there are not two."""
    if len(swings) < 2 or share_left(swings) <= LEFT:
        return ''
    return f'{share_left(swings):.0%} of the swing is left with the shaper; expected at most {LEFT:.0%}.'


def sentence(swings):
    """Return what the shaper is good for, '' without two runs."""
    if len(swings) < 2:
        return ''
    left = [np.degrees(one.residual.max()) for one in swings]
    count = len(swings[0].rests)
    return (f' In {count} rest{"s" * (count > 1)} between and after the motions the load swings by up to {left[0]:.2g} '
            f'instead of {left[1]:.2g} degrees, {share_left(swings):.1%}.')


def table(swings):
    """Yield rows of text, the header first: the swing of each passive joint in each run."""
    if not swings:
        return
    yield 'joint', 'run', 'in motion [deg]', 'at rest [deg]'
    for k, joint in enumerate(swings[0].joints):
        for one in swings:
            yield joint, one.run, f'{np.degrees(one.largest[k]):.2f}', f'{np.degrees(one.residual[k]):.3f}'


def figure(swings):
    """Return the picture of the swings over time, shaded where the reference moves."""
    joints = swings[0].joints
    drawn, grid = panels(12, 2.6 * len(joints), len(joints), len(swings), sharex=True, sharey='row')
    for column, one in enumerate(swings):
        grid[0][column].set_title(one.run)
        for k, joint in enumerate(joints):
            axes, degrees = grid[k][column], np.degrees(one.deviation[:, k])
            axes.plot(one.time, degrees, color=COLORS[column % 2], linewidth=1.4)
            axes.fill_between(one.time, 0.0, 1.0, where=one.moving, transform=axes.get_xaxis_transform(),
                              color='#eeeeee', linewidth=0.0, zorder=0)
            axes.axhline(0.0, color=BLACK, linewidth=0.6)
            note(axes, f'up to {np.degrees(one.residual[k]):.2g} deg at rest')
            axes.margins(y=0.3)
            if not column:
                axes.set_ylabel(f'{joint} [deg]')
    finish(grid)
    grid[-1][0].set_xlabel(f'{grid[-1][0].get_xlabel()}; grey: the reference moves')
    return drawn
