"""What a Kubernetes object is: kinds, quantities, selectors, patches, defaults, validation.

Pure data and pure functions. Nothing here reads a clock, touches the store or does I/O beyond
loading the shipped schema file. Objects are plain JSON dicts; they are read-only once handed
in, so every function that changes an object returns a new one (copy on write).
"""
