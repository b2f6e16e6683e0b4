"""Studies of tracking and identification in simulation."""

import jinja2

PAGES = jinja2.Environment(loader=jinja2.PackageLoader(__name__), trim_blocks=True, keep_trailing_newline=True,
                           undefined=jinja2.StrictUndefined)
