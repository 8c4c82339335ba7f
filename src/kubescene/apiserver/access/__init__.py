"""Who is asking, and who may.

`identity` says who asks over http, `tokens` over https; an `Authorizer` whether they may:
`AllowAll`, or `rbac` by the Roles and bindings that the world holds. `reviews` are questions about
access, answered by the same authorizer. What a running scenario refuses, it refuses when the write
comes. `security` is what https needs, `identities` the folder of those who are known.
"""

from kubescene.apiserver.access.authorizing import (
    AllowAll,
    Attributes,
    Authorizer,
    Permission,
    forbidden,
)
from kubescene.apiserver.access.identity import DEFAULT_ACTOR, Authenticate, by_prefix, impersonated
from kubescene.apiserver.access.reviews import is_review, review

__all__ = [
    "DEFAULT_ACTOR",
    "AllowAll",
    "Attributes",
    "Authenticate",
    "Authorizer",
    "Permission",
    "by_prefix",
    "forbidden",
    "impersonated",
    "is_review",
    "review",
]
