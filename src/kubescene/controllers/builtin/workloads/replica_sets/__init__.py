"""So many alike pods: `replicaset` is the controller, `pod_ranking` says which of them go first."""
