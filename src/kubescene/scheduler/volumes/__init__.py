"""What the volume plugins of the scheduler share: claims, volumes, and the nodes they reach."""
