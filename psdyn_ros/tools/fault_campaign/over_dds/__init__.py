"""The part of the fault campaign that runs real nodes over DDS."""
