"""What a robot never runs: demonstrations, studies, the papers' examples."""
