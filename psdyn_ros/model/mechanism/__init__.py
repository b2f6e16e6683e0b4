"""Links, joints, loops and inertias of a machine, read from its URDF."""
