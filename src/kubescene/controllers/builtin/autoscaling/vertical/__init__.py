"""The vertical pod autoscaler of release 1.7.1 on real objects: recommender and updater.

Both loop every minute. `recommending` feeds samples and kills to the recommender's rule and writes
statuses and checkpoints; `updating` evicts pods or resizes them; `targets` says whose pods they
are. What new pods get is decided where they are admitted
(`kubescene.registry.admission.plugins.vertical_pod_autoscaler`). The rules are in
`kubescene.autoscalers.vertical`.
"""
