"""What the machine is: URDF and YAML readers, frozen records, and the flat arrays for the kernels."""
