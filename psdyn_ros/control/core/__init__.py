"""The control cycle: measured state in, output out."""
