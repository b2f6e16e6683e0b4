"""The demonstration: simulator and controller as two processes, recorded and compared."""
