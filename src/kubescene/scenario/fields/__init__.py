"""What a Scenario may hold, said once.

`table` has every field; the schemas, the definition and the pages are written from it.
"""
