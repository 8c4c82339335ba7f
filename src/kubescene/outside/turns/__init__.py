"""The rules by which programs outside move: one module for each kind of program."""
