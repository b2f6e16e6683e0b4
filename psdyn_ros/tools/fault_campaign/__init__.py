"""The fault campaign: every fault in every safety state, judged independently."""
