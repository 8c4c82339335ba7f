"""Controllers, schedulers and API servers outside the process that take part in a Scenario."""
