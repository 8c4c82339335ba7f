"""What a TrafficRun says: its fields, how it is read, and what is wrong with it."""
