"""The simulator's own API: whole worlds, scenarios, remedies, the scheduler's configuration."""
