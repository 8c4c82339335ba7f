"""The four resources of admission policies."""

from kubescene.api.scheme import GroupResource

GROUP = "admissionregistration.k8s.io"
VALIDATING = GroupResource(GROUP, "validatingadmissionpolicies")
VALIDATING_BINDINGS = GroupResource(GROUP, "validatingadmissionpolicybindings")
MUTATING = GroupResource(GROUP, "mutatingadmissionpolicies")
MUTATING_BINDINGS = GroupResource(GROUP, "mutatingadmissionpolicybindings")
RESOURCES = (VALIDATING, VALIDATING_BINDINGS, MUTATING, MUTATING_BINDINGS)
