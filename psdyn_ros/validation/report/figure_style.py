"""What figures share: colours, resolution, grid, panels."""

from matplotlib.figure import Figure

# the first four are of Okabe and Ito: distinguished by everyone, and in print; the last is the tool path of the viewer
BLACK, BLUE, VERMILLION, GREEN, PURPLE = '#000000', '#0072B2', '#D55E00', '#009E73', '#8E24AA'
DPI = 130
KILO = 2e3          # N or N m from which forces are shown in thousands


def panels(width, height, rows=1, columns=1, lines='both', **shared):
    """Return (Figure of this size [inch], rows x columns of axes with grid lines); shared: as of `subplots`."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout='constrained')
    grid = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in grid.flat:
        axes.grid(True, axis=lines, color='#dddddd', linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, grid


def panel(width, height, lines='both'):
    """Return (Figure, its axes)."""
    figure, grid = panels(width, height, lines=lines)
    return figure, grid[0][0]


def some_panels(count, columns, width, height, **shared):
    """Return (Figure, axes) of so many panels of this size, `columns` in a row at most."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure, grid = panels(width * columns, height * rows, rows, columns, **shared)
    for axes in list(grid.flat)[count:]:
        axes.set_visible(False)
    return figure, grid


def finish(grid, since='from the first motion'):
    """Give a grid of axes over time what they share."""
    for axes in grid.flat:
        axes.margins(x=0.0)
    for axes in grid[-1]:
        axes.set_xlabel(f'time {since} [s]')


def in_kilo(largest, unit):
    """Return (factor, unit) in which a quantity is shown whose values are so large."""
    return (1e-3, f'k{unit}') if largest > KILO else (1.0, unit)


def note(axes, text):
    """Write a text into the upper right corner."""
    axes.text(0.985, 0.95, text, transform=axes.transAxes, ha='right', va='top', fontsize=9,
              bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.8, 'pad': 2})
