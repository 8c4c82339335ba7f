"""What goes with another: dependents, objects of a namespace, and Events that are old."""
