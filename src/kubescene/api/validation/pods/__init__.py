"""Rules of pods and pod templates, part by part, and of what may change in a pod."""
