"""Control cores, sub-states and loops in a time of their own."""
