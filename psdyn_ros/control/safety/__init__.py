"""The fault table, the safety state machine, the output gate and the open-loop stop."""
