"""What goes with another: dependents, and Events that are old."""
