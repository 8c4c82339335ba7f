"""When requests come: patterns and files become rates, rates become instants."""
