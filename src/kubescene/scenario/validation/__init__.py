"""What is wrong with a scenario, or said in vain, found before anything is touched.

`scenarios` finds all faults of a document; the other modules have the rules of one part each, and
`faults` what a fault is. `objects` and `unsimulated` look at what the operations would make.
"""
