"""Karpenter: which machines are ordered for which pods, and which are given up.

`packing` finds places, on nodes that exist or on claims of NodePools, whose instance types stay
open until they are launched; `disruption` finds nodes that are empty, drifted, or dearer than what
could hold their pods. Both are functions of one view of the cluster (`disruption.ClusterView`).
What they are made of: `requirements`, `instance_types`, `topology`, `pods`, `nodes`, `nodepools`,
`budgets`, `flags`.
"""
