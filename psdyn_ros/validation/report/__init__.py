"""Pages, tables and figures."""
