"""A snapshot with every name replaced, so that it can be passed around.

Every text is replaced, word by word (`db-0` becomes, say, `kq3mze-0`), unless it is known to be the
API's own vocabulary, an amount, an instant, or a label key that everybody has. Equal words become
equal words, so selectors still match, and what is named after something else still is: pods and
claims after their StatefulSet, static pods after their node. The words are made with a key that is
in no file; without it nobody can try names out.

Zones keep their order. Amounts, instants, kinds and numbers at the end of names stay.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kubescene.api import quantity
from kubescene.clock import parse_time
from kubescene.registry.bootstrap import SYSTEM_NAMESPACES, SYSTEM_PRIORITIES
from kubescene.snapshots.snapshot import Snapshot
from kubescene.types import JsonObject

WORD = re.compile(r"[^\W_]+")
UID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
SHARE = re.compile(r"\d+(?:\.\d+)?%?")
LETTERS, DIGITS = "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz234567"
LENGTH = 6
LONGEST_NUMBER = 4
"""Digits of an ordinal; longer numbers are words like any other."""
LONGEST_LABEL = 63

PUBLIC = re.compile(
    r"(?:^|\.)(?:kubernetes\.io|k8s\.io|karpenter\.sh|karpenter\.k8s\.aws|eks\.amazonaws\.com"
    r"|cloud\.google\.com|kubernetes\.azure\.com|kubescene\.dev|nvidia\.com|amd\.com)(?:/|$)"
)
"""Domains of keys that everybody has, and of what they name."""
PUBLIC_KEYS = frozenset(
    {
        "agentpool",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "metadata.name",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)
PUBLIC_NAMES = frozenset(
    (*SYSTEM_NAMESPACES, *SYSTEM_PRIORITIES, "default-scheduler", "kubernetes", "kube-root-ca.crt")
)
"""What every cluster has."""
ZONES = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
    "topology.ebs.csi.aws.com/zone",
    "topology.gke.io/zone",
)
KEPT_VALUES = frozenset(
    {
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "karpenter.sh/capacity-type",
        "eks.amazonaws.com/capacityType",
        "cloud.google.com/gke-spot",
        "kubernetes.azure.com/scalesetpriority",
        "batch.kubernetes.io/job-completion-index",
    }
)
"""Labels whose values say what a machine is, not whose it is."""
RESOURCES = frozenset({"requests", "limits", "capacity", "allocatable", "hard", "used"})
"""Members whose keys are names of resources."""
LABELS = frozenset({"labels", "matchLabels", "nodeSelector", "annotations"})
VOCABULARY = frozenset(
    """
    accessModes apiVersion attacher completionMode concurrencyPolicy conditionType dnsPolicy driver
    effect externalTrafficPolicy fieldPath finalizers imagePullPolicy internalTrafficPolicy
    ipFamilies ipFamilyPolicy kind nodeAffinityPolicy nodeTaintsPolicy operator
    persistentVolumeReclaimPolicy phase podManagementPolicy podReplacementPolicy preemptionPolicy
    procMount protocol provisioner qosClass reason reclaimPolicy resource resourceName restartPolicy
    schedule schedulerName scope scopeName sessionAffinity status takenAt
    terminationMessagePolicy timeZone tool type unhealthyPodEvictionPolicy updateMode
    volumeBindingMode volumeMode whenDeleted whenScaled whenUnsatisfiable why
    """.split()  # noqa: SIM905
)
"""Members whose texts are words of the API, whatever stands there."""
KEYS = frozenset({"key", "topologyKey"})
"""Members whose texts are keys of labels or taints."""
DROPPED = frozenset(
    """
    addresses clusterIP clusterIPs description externalIPs externalName hostIP hostIPs
    loadBalancerIP loadBalancerSourceRanges loadBalancer managedFields message nodeInfo podCIDR
    podCIDRs podIP podIPs providerID terminationMessagePath volumeAttributes volumesAttached
    volumesInUse
    """.split()  # noqa: SIM905
)
"""Members that hold addresses, free text, or what no simulation reads."""


def anonymized(snapshot: Snapshot, key: bytes) -> Snapshot:
    """The same cluster with other names; ``key`` should be of 16 random bytes or more."""
    names = Names(key, snapshot.objects)
    return replace(
        snapshot,
        objects=[names.renamed(obj) for obj in snapshot.objects],
        remarks=[],
        scheduler_config=None,
        anonymized=True,
    )


class Names:
    """The new names of one snapshot."""

    def __init__(self, key: bytes, objects: Iterable[JsonObject]) -> None:
        self._key = key
        self._words: dict[str, str] = {}
        self._taken: set[str] = set()
        self._whole: dict[str, str] = {}
        listed = list(objects)
        self._whole |= {name: name for name in PUBLIC_NAMES}
        zones = sorted({zone for obj in listed for zone in _zones(obj)})
        width = len(str(len(zones)))
        for number, zone in enumerate(zones, 1):
            self._whole[zone] = f"zone-{number:0{width}}"
        nodes = [str(obj["metadata"]["name"]) for obj in listed if obj.get("kind") == "Node"]
        for node in sorted(nodes):
            self._whole.setdefault(node, f"node-{self._word(node)}")
        self._nodes = frozenset(nodes)

    def renamed(self, obj: JsonObject) -> JsonObject:
        """The object with new names; what was given is not changed."""
        result: JsonObject = self._object(obj)
        return result

    def text(self, text: str) -> str:
        """A name of any kind."""
        if (known := self._whole.get(text)) is not None:
            return known
        renamed = self._static(text) or WORD.sub(lambda found: self._word(found[0]), text)
        if len(renamed) > LONGEST_LABEL >= len(text):
            renamed = self._fresh(text)
        self._whole[text] = renamed
        return renamed

    # -- walking -------------------------------------------------------------------------------

    def _object(self, members: Mapping[str, Any], at: str = "") -> JsonObject:
        if at in RESOURCES:
            return {self._resource(name): part for name, part in members.items()}
        if at in LABELS:
            return {
                self.key(name): self._label(name, value)
                for name, value in members.items()
                if at != "annotations" or PUBLIC.search(name.partition("/")[0])
            }
        is_key = members.get("key")
        return {
            name: part if is_key in KEPT_VALUES and name == "values" else self._value(part, name)
            for name, part in members.items()
            if name not in DROPPED
        }

    def _value(self, value: Any, at: str) -> Any:
        if isinstance(value, Mapping):
            return self._object(value, at)
        if isinstance(value, list):
            return [self._value(each, at) for each in value]
        if not isinstance(value, str):
            return value
        if at in KEYS:
            return self.key(value)
        if at in VOCABULARY or not value or _is_amount_or_instant(value):
            return value
        return self.text(value)

    def _label(self, key: str, value: Any) -> Any:
        if key in KEPT_VALUES or not isinstance(value, str) or not value:
            return value
        return value if value in ("true", "false") or SHARE.fullmatch(value) else self.text(value)

    def key(self, key: str) -> str:
        """The key of a label, annotation or taint; one that everybody has stays."""
        prefix, slash, _ = key.partition("/")
        if key in PUBLIC_KEYS or (slash and PUBLIC.search(prefix)) or PUBLIC.search(key):
            return key
        return self.text(key)

    def _resource(self, name: str) -> str:
        """Names of resources stay: they say what a machine has."""
        return name

    # -- words ---------------------------------------------------------------------------------

    def _static(self, text: str) -> str:
        """The name of something that is named after its node, or empty."""
        if UID.fullmatch(text):
            digest = self._digest(text).hex()
            parts = digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]
            return "-".join(parts)
        head, dash, _ = text.partition("-")
        while dash:
            rest = text[len(head) + 1 :]
            if rest in self._nodes:
                return f"{self.text(head)}-{self._whole[rest]}"
            more, dash, _ = rest.partition("-")
            head = f"{head}-{more}"
        return ""

    def _word(self, word: str) -> str:
        if word.isdecimal() and len(word) <= LONGEST_NUMBER:
            return word
        if (known := self._words.get(word)) is None:
            known = self._words[word] = self._fresh(word)
        return known

    def _fresh(self, text: str) -> str:
        """A word that nothing else has become."""
        for length in range(LENGTH, 30):
            made = _spelt(self._digest(text), length)
            if made not in self._taken:
                self._taken.add(made)
                return made
        raise AssertionError("a digest of 32 bytes has met 24 others")

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), hashlib.sha256)


def _spelt(digest: bytes, length: int) -> str:
    first = LETTERS[digest[0] % len(LETTERS)]
    return first + "".join(DIGITS[each % len(DIGITS)] for each in digest[1:length])


def _zones(obj: JsonObject) -> Iterator[str]:
    if obj.get("kind") == "Node":
        labels = obj["metadata"].get("labels") or {}
        yield from (str(labels[key]) for key in ZONES if labels.get(key))


def _is_amount_or_instant(text: str) -> bool:
    if SHARE.fullmatch(text):
        return True
    if text[:1].isdecimal() or text[:1] in "+-":
        try:
            quantity.parse(text)
        except ValueError:
            pass
        else:
            return True
        try:
            parse_time(text)
        except ValueError:
            return False
        return True
    return False
