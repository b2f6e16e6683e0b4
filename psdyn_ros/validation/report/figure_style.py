"""What figures share: colours, resolution, grid."""

# the first four are of Okabe and Ito: distinguished by everyone, and in print; the last is the tool path of the viewer
BLACK, BLUE, VERMILLION, GREEN, PURPLE = '#000000', '#0072B2', '#D55E00', '#009E73', '#8E24AA'
DPI = 130


def finish(grid, since='from the first motion'):
    """Give a grid of axes over time what they share."""
    for axes in grid.flat:
        axes.grid(True, color='#dddddd', linewidth=0.6)
        axes.margins(x=0.0)
    for axes in grid[-1]:
        axes.set_xlabel(f'time {since} [s]')
