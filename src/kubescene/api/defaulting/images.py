"""The pull policy that follows from an image name.

``Always`` for the tag ``latest``, written out or implied, and ``IfNotPresent`` for everything
else. Names that do not parse have no tag, so they get ``IfNotPresent`` too. The grammar is
that of container image references: ``[domain/]path[:tag][@digest]``.
"""

import re

_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:{_DOMAIN}/)?(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_BARE_ID = re.compile(r"[a-f0-9]{64}")
_DIGEST = re.compile(r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_LONGEST_PATH = 255


def pull_policy(image: str) -> str:
    """The ``imagePullPolicy`` of a container that names none."""
    return "Always" if _tag(image) == "latest" else "IfNotPresent"


def _tag(image: str) -> str:
    found = None if _BARE_ID.fullmatch(image) else _REFERENCE.fullmatch(_with_domain(image))
    if found is None or len(found["path"]) > _LONGEST_PATH:
        return ""
    digest = found["digest"]
    if digest and not _DIGEST.fullmatch(digest):
        return ""
    return found["tag"] or ("" if digest else "latest")


def _with_domain(image: str) -> str:
    """Familiar names in full: without a registry they mean Docker Hub."""
    first, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    if first == "localhost" or "." in first or ":" in first or first != first.lower():
        return image
    return f"docker.io/{image}"
