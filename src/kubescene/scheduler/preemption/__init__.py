"""Making room for a pod by removing others: whom, on which node, and why that one.

`budgets` knows the PodDisruptionBudgets, `victims` orders pods and finds whom a node
would lose, `dry_runs` asks that of many nodes and remembers, `best_candidate` picks one of them.
None of them writes anything; the plugin DefaultPreemption puts them together, and the scheduler's
`VictimEvictions` carry out what it decides.
"""
