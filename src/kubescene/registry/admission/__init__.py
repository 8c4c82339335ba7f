"""Admission: the ordered chain, and the plugins that Kubescene has of it."""
