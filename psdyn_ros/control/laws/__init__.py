"""Control laws, and what they compute with."""
