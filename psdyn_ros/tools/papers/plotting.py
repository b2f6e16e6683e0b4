"""Figures of one style, drawn without a display."""
from matplotlib.figure import Figure

# Okabe and Ito: distinguished by everyone, and in print
COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#56B4E9', '#E69F00')
BLACK = '#000000'
DPI = 110


class Plate:
    """A figure with its title, rows x columns of axes."""

    def __init__(self, title, rows=1, columns=1, size=(8.0, 4.5), sharex=True):
        self.title = title
        self.figure = Figure(figsize=size, dpi=DPI, layout='constrained')
        self.axes = self.figure.subplots(rows, columns, sharex=sharex, squeeze=False)
        for axes in self.axes.flat:
            axes.grid(True, color='#dddddd', linewidth=0.6)
            axes.set_prop_cycle(color=COLORS)

    def write(self, path):
        """Write a PNG file; the same figure makes the same bytes."""
        self.figure.savefig(path, format='png', metadata={'Software': None})


def label(axes, y, x=None, columns=6):
    """Name the axes; the legend of what has a label is above them, where it hides nothing."""
    axes.set_ylabel(y)
    if x:
        axes.set_xlabel(x)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, ncols=columns, frameon=False, loc='lower left', bbox_to_anchor=(-0.01, 0.98))
