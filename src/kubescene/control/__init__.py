"""What turns the crank: control loops, who of them has work, and running them to rest."""
