"""Subresources that are more than a part of an object: binding, eviction, scale, parts of pods."""
