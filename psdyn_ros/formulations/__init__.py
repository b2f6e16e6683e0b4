"""The formulations of the papers, written to be read beside them: independent witnesses of the kernels."""
