"""The version of Kubescene, written into every result, and that of Kubernetes."""

__version__ = "0.1.0"
KUBERNETES_VERSION = "v1.36.4"
"""What is simulated."""
