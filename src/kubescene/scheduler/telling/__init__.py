"""What an attempt leaves behind: conditions, Events, annotations, and the report of the attempt."""
