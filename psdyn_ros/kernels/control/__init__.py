"""Control laws, output gate and plausibility checks in one control cycle."""
