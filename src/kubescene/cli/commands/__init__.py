"""What can be said on the command line: options and their help; the work is done elsewhere."""
