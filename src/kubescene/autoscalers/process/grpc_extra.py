"""gRPC, or the message that says which extra brings it."""

from kubescene.errors import ConfigurationError

try:
    import grpc
    from google import protobuf
except ImportError as error:
    raise ConfigurationError(
        "autoscalers in other processes need gRPC: pip install 'kubescene[processes]'"
    ) from error

__all__ = ["grpc", "protobuf"]
