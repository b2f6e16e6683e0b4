"""What figures share: colours, resolution, grid."""

# Okabe and Ito: distinguished by everyone, and in print
BLACK, BLUE, VERMILLION, GREEN = '#000000', '#0072B2', '#D55E00', '#009E73'
DPI = 130


def finish(grid, since='from the first motion'):
    """Give a grid of axes over time what they share."""
    for axes in grid.flat:
        axes.grid(True, color='#dddddd', linewidth=0.6)
        axes.margins(x=0.0)
    for axes in grid[-1]:
        axes.set_xlabel(f'time {since} [s]')
