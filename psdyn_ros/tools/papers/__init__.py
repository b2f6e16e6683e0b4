"""Every example and figure of the four papers, computed again and set beside the papers' own numbers."""

SECTIONS = ('paz', 'saha', 'wang', 'alazard', 'urdf')    # of the page, the last one the machines of urdf/
