"""Skenario's `POST /run`: what it takes, and the series and texts that it answers."""
