"""Every field of a Scenario, once: name, type, meaning.

What is strict about a spec (`validation.faults`), the schemas (`json_schema`) and the reference
page for people are made from this table.
"""

from enum import StrEnum

from msgspec import Struct

from kubescene.api.kinds import SCENARIO

MAX_STEP = 2**31 - 1
MAX_COUNT = 1_000_000
FIELD_VALIDATION = ("Strict", "Warn", "Ignore")
PROPAGATION_POLICIES = ("Background", "Foreground", "Orphan")
CREATED_SUBRESOURCES = ("binding", "eviction", "scale", "status")
PATCHED_SUBRESOURCES = ("status", "scale")
EXPLAIN_LEVELS = ("Auto", "Full", "Failures", "Off")
OUTSIDE_KINDS = ("scheduler", "operator", "bag")
FEEDS = ("OnePod", "AllPods")
SETTINGS = ("Checked", "Unchecked")
LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class FieldType(StrEnum):
    """The types of JSON, by their names in a schema."""

    TEXT = "string"
    WHOLE = "integer"
    FLAG = "boolean"
    OBJECT = "object"
    LIST = "array"
    AMOUNT = "amount"
    """A scalar, or an object with the name of a distribution; any type in a schema."""


class Field(Struct, frozen=True):
    """One field. ``also`` are other spellings of it; ``open`` admits members that are not listed.

    ``items`` is what a list holds. ``is_map`` is an object with texts under any names. ``refused``
    are members that people may look for and that are not there on purpose: name and reason.
    """

    name: str
    type: FieldType
    about: str
    fields: tuple["Field", ...] = ()
    items: "Field | None" = None
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    default: str = ""
    also: tuple[str, ...] = ()
    open: bool = False
    is_map: bool = False
    refused: tuple[tuple[str, str], ...] = ()

    def member(self, name: str) -> "Field | None":
        """The field that a name stands for, in whichever spelling."""
        for field in self.fields:
            if name == field.name or name in field.also:
                return field
        return None


def text(name: str, about: str, **more: object) -> Field:
    return Field(name, FieldType.TEXT, about, **more)  # type: ignore[arg-type]


def whole(name: str, about: str, **more: object) -> Field:
    return Field(name, FieldType.WHOLE, about, **more)  # type: ignore[arg-type]


def flag(name: str, about: str, **more: object) -> Field:
    return Field(name, FieldType.FLAG, about, **more)  # type: ignore[arg-type]


def amount(name: str, about: str, **more: object) -> Field:
    return Field(name, FieldType.AMOUNT, about, **more)  # type: ignore[arg-type]


def record(name: str, about: str, *fields: Field, **more: object) -> Field:
    return Field(name, FieldType.OBJECT, about, fields, **more)  # type: ignore[arg-type]


def items_of(name: str, about: str, item: Field, **more: object) -> Field:
    return Field(name, FieldType.LIST, about, items=item, **more)  # type: ignore[arg-type]


API_VERSION = text("apiVersion", "Version of the schema, such as `v1` or `apps/v1`.", required=True)
KIND = text("kind", "Kind of the object, such as `Pod`.", required=True)

_OPTIONS_META = (
    text("apiVersion", "As in Kubernetes; not needed."),
    text("kind", "As in Kubernetes; not needed."),
    items_of("dryRun", "A fault unless empty: a scenario is for real.", text("", "`All`.")),
)
_WRITE_OPTIONS = (
    text(
        "fieldManager",
        "Whom the written fields belong to, at most 128 bytes.",
        default="scenario-engine",
    ),
    text(
        "fieldValidation",
        "What unknown fields of this operation are: a fault, a warning, or nothing.",
        choices=FIELD_VALIDATION,
        default="Strict",
    ),
    *_OPTIONS_META,
)

TARGET = (
    record("typeMeta", "The kind of the object.", API_VERSION, KIND, required=True),
    record(
        "objectMeta",
        "Which object.",
        text("name", "Its name.", required=True),
        text("namespace", "Its namespace, if its kind has one.", default="default"),
        record("labels", "Accepted, and not looked at: the name says which object.", open=True),
        record("annotations", "Accepted, and not looked at.", open=True),
        text("creationTimestamp", "Accepted empty, as programs in Go write it."),
    ),
)


def label_selector(name: str, about: str) -> Field:
    return record(
        name,
        f"{about}, as in a Deployment: `matchLabels`, `matchExpressions`. One that is empty is a "
        "fault; `matchLabels: {}` is everything.",
        Field("matchLabels", FieldType.OBJECT, "Labels that must be there.", is_map=True),
        items_of(
            "matchExpressions",
            "What else must hold of the labels.",
            record(
                "",
                "A requirement.",
                text("key", "The label.", required=True),
                text("operator", "How.", required=True, choices=LABEL_OPERATORS),
                items_of("values", "Of `In` and `NotIn`.", text("", "A value.")),
            ),
        ),
    )


CHOICE = (
    label_selector("selector", "Instead of `objectMeta`: the labels of all objects that are meant"),
    text(
        "namespace",
        "Of a selector: only objects of this namespace.",
        default="all of them",
    ),
    whole(
        "limit",
        "Of a selector: so many of them at most, the first by namespace and name.",
        least=1,
        most=MAX_COUNT,
    ),
    text(
        "share",
        "Of a selector: this part of them, such as `25%`, rounded up; the first by namespace and "
        "name.",
    ),
)
NUMBERED = whole(
    "count",
    "So many objects: `$(INDEX)` in the name and elsewhere becomes 0, 1, 2 ..., and `$$(INDEX)` "
    "becomes `$(INDEX)`. Not beside a selector.",
    least=1,
    most=MAX_COUNT,
    default="1",
)

_EVERY = text("every", "The time between two, such as `30s`.", required=True)
_SIZES = (
    amount(
        "cpu",
        "What the first container of the pod, or of the template, requests: a quantity, or a "
        "distribution as in `spec.simulation.workloads`.",
    ),
    amount("memory", "The same of memory."),
    amount(
        "runTime",
        "How long the pod runs: becomes its annotation `kubescene.dev/run-time`.",
    ),
)
_ARRIVALS = record(
    "arrivals",
    "The objects come one after the other while virtual time passes; `$(INDEX)` in them becomes 0, "
    "1, 2 .... Exactly one of `poisson`, `uniform`, `bursts`, `listed` and `file`. `count` beside "
    "it says how many come at most.",
    record(
        "poisson",
        "At random times: gaps are exponential and independent.",
        text("every", "The mean time between two, such as `30s`.", required=True),
    ),
    record("uniform", "At even times, the first at once.", _EVERY),
    record(
        "bursts",
        "Many at once, again and again, the first at once.",
        _EVERY,
        whole("size", "So many at once.", required=True, least=1, most=MAX_COUNT),
    ),
    items_of(
        "listed",
        "One for each entry, in the order of their times.",
        record(
            "",
            "An object that comes; what it says of itself wins.",
            text("at", "When, counted from the operation, such as `90s`.", required=True),
            *_SIZES,
        ),
    ),
    text(
        "file",
        "A CSV file that lists them, by its path inside the folder of the scenario: a first line "
        "with the names of columns, `at` and any of `cpu`, `memory`, `runTime`. Times without a "
        "unit are seconds; what is empty is not said.",
    ),
    text("for", "Only those that come before that time is over, such as `1h`."),
    *_SIZES,
)

CREATE = record(
    "createOperation",
    "Create an object, or several.",
    record("object", "The object, as kubectl would apply it.", API_VERSION, KIND, open=True),
    text(
        "objectFrom",
        "Instead of `object`: a YAML file with one or more objects, by its path inside the folder "
        "of the scenario. Only where a file is played, not in a served cluster.",
    ),
    whole(
        "count",
        "So many of them; `$(INDEX)` in the object becomes 0, 1, 2 ..., and `$$(INDEX)` becomes "
        "`$(INDEX)`. Without a count or `arrivals` both stay as they are.",
        least=1,
        most=MAX_COUNT,
        default="1",
    ),
    _ARRIVALS,
    text(
        "subresource",
        "Write through this part of an existing object: a Binding or an Eviction is posted, a "
        "`status` replaced, `scale` sets the replicas. Objects of the kinds Binding and Eviction "
        "go there by themselves. For `scale` the object is a Scale, or has the kind of what is "
        "scaled and nothing but `spec.replicas`.",
        choices=CREATED_SUBRESOURCES,
    ),
    record("createOptions", "As in Kubernetes.", *_WRITE_OPTIONS),
)
PATCH = record(
    "patchOperation",
    "Change an object that exists, or several.",
    *TARGET,
    *CHOICE,
    NUMBERED,
    text("patch", "The patch, as JSON or YAML text.", required=True),
    text(
        "patchType",
        "`application/json-patch+json`, `application/merge-patch+json`, "
        "`application/strategic-merge-patch+json` or `application/apply-patch+yaml`, or the short "
        "words `json`, `merge`, `strategic`, `apply`.",
        default="strategic for built-in kinds, merge for custom ones",
        also=("PatchType",),
    ),
    text(
        "subresource",
        "Patch this part of the object: a node's `status`, a Deployment's `scale`.",
        choices=PATCHED_SUBRESOURCES,
    ),
    record(
        "patchOptions",
        "As in Kubernetes.",
        flag("force", "Whether an apply takes fields that others own.", default="false"),
        *_WRITE_OPTIONS,
    ),
)
_DELETE_OPTIONS = record(
    "deleteOptions",
    "As in Kubernetes.",
    whole("gracePeriodSeconds", "How long a pod may take to end.", least=0),
    record(
        "preconditions",
        "What must hold of the object.",
        text("uid", "Its uid."),
        text("resourceVersion", "Its revision."),
    ),
    text(
        "propagationPolicy",
        "What becomes of the objects that it owns.",
        choices=PROPAGATION_POLICIES,
    ),
    *_OPTIONS_META,
)
DELETE = record(
    "deleteOperation",
    "Delete an object, or several.",
    *TARGET,
    *CHOICE,
    NUMBERED,
    _DELETE_OPTIONS,
)
EVICT = record(
    "evictOperation",
    "Evict pods, as far as their disruption budgets allow. Whoever is refused is asked for again "
    "every 5 s of virtual time; until then the operation is outstanding, and the scenario goes on.",
    record("typeMeta", "Always `v1`, `Pod`; not needed.", API_VERSION, KIND),
    TARGET[1],
    *CHOICE,
    text("timeout", "Give up after that; `0s` is never.", default="0s"),
    _DELETE_OPTIONS,
)
DRAIN = record(
    "drainOperation",
    "Cordon nodes, then empty them one after the other, as `kubectl drain` does: the fields are "
    "its flags, and so are their defaults. It goes on while virtual time passes. A node whose pods "
    "must not be touched is left, and told of.",
    items_of("names", "The nodes, in this order.", text("", "The name of a node.")),
    label_selector("selector", "Instead of `names`: the labels of the nodes"),
    text("timeout", "How long one node may take; `0s` is for ever.", default="0s"),
    flag("force", "Also pods that declare no controller.", default="false"),
    flag(
        "ignoreDaemonSets",
        "Leave pods of DaemonSets where they are. Without it they keep a node from being drained.",
        default="false",
    ),
    flag(
        "deleteEmptyDirData",
        "Also pods with an `emptyDir`, whose data is lost.",
        default="false",
    ),
    whole(
        "gracePeriodSeconds",
        "How long a pod may take to end.",
        least=0,
        default="that of the pod",
    ),
    label_selector("podSelector", "Only pods with these labels"),
    flag("disableEviction", "Delete pods, whatever disruption budgets say.", default="false"),
    whole(
        "skipWaitForDeleteTimeoutSeconds",
        "Do not wait for pods that should have been gone for longer than that.",
        least=1,
    ),
)
REPLAY = record(
    "replayOperation",
    "Play what others than controllers did in a recorded history, at its instants from now on, "
    "while virtual time passes. What the world here refuses is told, and the replay goes on.",
    text(
        "file",
        "The history, by its path inside the folder of the scenario: what `kubescene record` "
        "wrote, or another form of recordings. Only where a file is played, not in a served "
        "cluster.",
        required=True,
    ),
    text("format", "The form of the history.", default="what the file looks like"),
)
DONE = record(
    "doneOperation",
    "The scenario succeeds when this step is complete. Later operations are never played.",
    flag("done", "Always true; the drafts of KEP-140 write it."),
)
ADVANCE = record(
    "advanceOperation",
    "Let virtual time pass after the step has come to rest. The last operation of its step.",
    text("duration", "How long, such as `90s` or `1h30m`.", required=True),
)
OPERATION_BODIES = (CREATE, PATCH, DELETE, EVICT, DRAIN, REPLAY, DONE, ADVANCE)

OPERATION = record(
    "",
    "One operation: exactly one of the `...Operation` fields.",
    text(
        "id",
        "Its name in the timeline; made from its place if it has none. `@...` and `ID[n]` are "
        "those of what controllers do and of the objects of one operation.",
    ),
    whole(
        "step", "The major step at which it is carried out.", required=True, least=1, most=MAX_STEP
    ),
    text(
        "operation",
        "The type, as the drafts of KEP-140 name it. It must match the field that is set.",
        choices=("Create", "Patch", "Delete", "Evict", "Drain", "Replay", "Done", "Advance"),
    ),
    *OPERATION_BODIES,
)

_CONTROLLER = record("", "A controller.", text("name", "Its name.", required=True, also=("Name",)))


def _controllers(name: str, about: str, enabled: str, disabled: str, **more: object) -> Field:
    return record(
        name,
        about,
        items_of("enabled", enabled, _CONTROLLER),
        items_of("disabled", disabled, _CONTROLLER),
        **more,
    )


_NO_PROGRAMS = (
    "a scenario starts no programs: leave it out and say "
    'kubescene run --outside NAME="command" where the scenario is played'
)
CONDITION = record(
    "",
    "A sentence in CEL about objects: true as soon as the controller has done its work.",
    API_VERSION,
    KIND,
    text("namespace", "Only objects of this namespace.", default="all of them"),
    text(
        "expression",
        "What must hold: true or false. `object` is every object of that kind in turn, `objects` "
        "is the list of them; one that has no value, since a field is not there, does not hold.",
        required=True,
    ),
    text("message", "What to tell people where it does not hold."),
)
WAITER = record(
    "waiter",
    "Who says from the state of the objects that the controller has nothing left to do. Without "
    "one the wire and the process alone are looked at.",
    text(
        "name",
        "`kube-scheduler`, `workloads`, `quiet`, or one that whoever plays the scenario brings "
        "(`--waiter module:Class`). Not beside `conditions`.",
    ),
    text(
        "quietPeriod",
        "How long, in real time, the controller must have sent nothing before it is asked. Alone: "
        "the waiter `quiet`.",
    ),
    items_of("conditions", "Instead of a name: all of these must hold.", CONDITION),
)
OUTSIDE_CONTROLLER = record(
    "",
    "A controller that runs in a process of its own and has its turns through the API.",
    text(
        "name",
        "Its name here and its identity: it talks to the server by `/as/NAME`. That of a built-in "
        "controller takes its place.",
        required=True,
    ),
    text(
        "kind",
        "How turns are given: a `scheduler` is fed pods, an `operator` goes write by write, a "
        "`bag` of controllers in rounds and only before the simulation.",
        choices=OUTSIDE_KINDS,
        default="operator",
    ),
    text(
        "schedulerName",
        "Of a scheduler: the pods that are its own.",
        default="default-scheduler",
    ),
    items_of(
        "schedulerNames",
        "Of a scheduler with several profiles: the names of all of them, instead of "
        "`schedulerName`.",
        text("", "A `schedulerName` of pods."),
    ),
    text(
        "feed",
        "Of a scheduler: how many pods it is shown in a turn. `AllPods` is faster, and the only "
        "right one where its QueueSort is not PrioritySort; it then decides before others react.",
        choices=FEEDS,
        default="OnePod",
    ),
    WAITER,
    text(
        "timeout",
        "Real time that one turn may take; the scenario fails after that.",
        default="240s",
    ),
    text(
        "attachTimeout",
        "Real time that it may take to come and open its watches.",
        default="60s",
    ),
    text(
        "settings",
        "`Unchecked`: play also with settings that make results differ from run to run; the status "
        "says so.",
        choices=SETTINGS,
        default="Checked",
    ),
    refused=tuple(
        (name, _NO_PROGRAMS) for name in ("command", "args", "binary", "exec", "image", "program")
    ),
)

CONTROLLERS = record(
    "controllers",
    "Who plays. Without it `kube-scheduler` is simulated and everybody else runs before it.",
    _controllers(
        "simulationControllers",
        "The controllers under test: one loop at a time, each loop that writes is a minor step.",
        "In the order in which they have their turns; at least one.",
        "Nobody is enabled by himself here, so this is for completeness.",
    ),
    _controllers(
        "presimulationControllers",
        "Those that react at once, before a simulation controller has its turn.",
        "Needed only where `disabled` has `*`.",
        "Who must not run; `*` is everybody.",
        also=("preSimulationControllers",),
    ),
    items_of(
        "outside",
        "Controllers that run in other processes. Each is a simulation controller if it is named "
        "there, otherwise it reacts before the simulation, as everybody does.",
        OUTSIDE_CONTROLLER,
    ),
)

KUBELET = record(
    "kubelet",
    "The stand-in for kubelets. Delays elapse only under `advanceOperation`.",
    text("startDelay", "From the bind to running.", default="0s"),
    text("readyDelay", "From running to ready.", default="0s"),
    text("terminateDelay", "From deletion to gone, at most the pod's grace period.", default="0s"),
    flag(
        "serializeImagePulls",
        "Whether a node pulls one image after the other, as a kubelet does unless it is told "
        "otherwise; without it, all at once.",
    ),
)
_PROBES = tuple(
    record(
        name,
        f"How a container answers its {what} probe, if its spec has one; it passes unless it is "
        "said otherwise. Times count from the start of a run.",
        amount("passAfter", "It fails until then.", default="0s"),
        amount("failAfter", "It fails from then on."),
        amount("failFor", "And for so long; without it, for good."),
        items_of(
            "fails",
            "It fails at these times, too.",
            record(
                "",
                "A time at which it fails.",
                amount("after", "From then on.", required=True),
                amount("for", "For so long; without it, for good."),
            ),
        ),
        amount("share", "Of how many runs all of this is true: from 0 to 1.", default="1"),
        text("message", "What the Event says of a probe that fails."),
    )
    for name, what in (
        ("startupProbe", "startup"),
        ("readinessProbe", "readiness"),
        ("livenessProbe", "liveness"),
    )
)
_USAGE = record(
    "usage",
    "What a container uses: a quantity, a distribution, `{share: 0.5}` of its request, or "
    "`{series: [{at: 0s, value: 100m}, ...], interpolation: Linear}` by time since its start. "
    "Memory above its limit ends it as OOMKilled.",
    amount("cpu", "Cores."),
    amount("memory", "Bytes."),
)
_CONTAINER_BEHAVIOUR = (
    amount(
        "runTime",
        "How long a container runs before it ends by itself: `30s`, or a distribution such as "
        "`{exponential: {mean: 30s}}`, drawn anew for every run. Without it, until it is stopped.",
    ),
    amount(
        "exitCode",
        "The exit code of a container that ends by itself: a number from 0 to 255, or a "
        "distribution such as `{empirical: {values: [0, 0, 0, 1]}}`.",
        default="0",
    ),
    amount("readyTime", "How long a container that runs is not ready; `readyDelay` without it."),
    amount(
        "postStartTime",
        "How long its postStart hook takes: before it is over nothing is probed.",
        default="0s",
    ),
    amount(
        "postStartFailures",
        "In how many of its runs, from the first on, the postStart hook fails and it is killed.",
        default="0",
    ),
    amount("preStopTime", "How long its preStop hook takes.", default="0s"),
    amount(
        "terminationTime",
        "How long it takes to end once it is asked to, at most the pod's grace period; "
        "`terminateDelay` without it.",
    ),
    amount("oomAfter", "When it is killed since it uses too much memory."),
    *_PROBES,
    amount("pullTime", "How long its image takes to be pulled where the node does not have it."),
    text("pullError", "Why a pull fails: all of them, or as many as `pullFailures` says."),
    amount("pullFailures", "How many pulls fail before one does not."),
    amount("imageSize", "The size of its image, in bytes: the node tells it once it is pulled."),
    _USAGE,
    items_of(
        "logs",
        "What it writes in each of its runs: `kubectl logs` shows it in a served world.",
        record(
            "",
            "A line.",
            text("text", "One line of text.", required=True),
            text("after", "How long after the start of the run: `2s`.", default="0s"),
            text("every", "And then ever again, so often; without it, once."),
        ),
    ),
)
WORKLOADS = items_of(
    "workloads",
    "How pods behave; the first entry that fits a pod counts. Annotations of a pod win over it: "
    "`kubescene.dev/run-time` for `runTime`, and so on, with the same values.",
    record(
        "",
        "Some pods, and what their containers do.",
        record(
            "selector",
            "Labels of the pods, as in a Deployment (`matchLabels`, `matchExpressions`). "
            "Without it, all of them.",
            open=True,
        ),
        text("namespace", "Only pods of this namespace. Without it, of all."),
        amount("startTime", "From the bind to its first container; `startDelay` without it."),
        amount("resizeTime", "How long a resize takes that is granted.", default="0s"),
        *_CONTAINER_BEHAVIOUR,
        items_of(
            "containers",
            "What is different for single containers. Of init containers only these speak of how "
            "they run, end and are probed.",
            record(
                "",
                "A container.",
                text("name", "Its name.", required=True),
                *_CONTAINER_BEHAVIOUR,
            ),
        ),
    ),
)
SIMULATION = record(
    "simulation",
    "How the scenario is played.",
    whole("seed", "Where generated names and chance begin.", default="0"),
    text(
        "snapshot",
        "A file beside the scenario: the objects of a cluster, which are there when it begins, as "
        "they were. Forms: `kubescene snapshot --formats`. Only where a file is played.",
    ),
    text(
        "startTime",
        "The first instant of virtual time; with a `snapshot`, the newest that it speaks of.",
        default="2026-01-01T00:00:00Z",
    ),
    text(
        "explain",
        "What is kept of scheduling decisions: all scores, those of failed attempts, or nothing. "
        "`Auto` is `Full` up to 200 nodes, else `Failures`.",
        choices=EXPLAIN_LEVELS,
        default="Auto",
    ),
    flag(
        "annotations",
        "Whether the scheduler annotates pods with the results of every attempt, as "
        "kube-scheduler-simulator does.",
        default="false",
    ),
    record("schedulerConfig", "A KubeSchedulerConfiguration.", open=True),
    KUBELET,
    WORKLOADS,
    record(
        "clusterAutoscaler",
        "The cluster autoscaler of node groups with a `max`: its flags by their own names, such as "
        "`expander: price`. `mode: Immediate` is for steps without time; `schedulerProfile` names "
        "the profile of the scheduler that judges nodes. Without this, none.",
        open=True,
    ),
    record(
        "karpenter",
        "Karpenter, which orders machines for NodePools from what an InstanceCatalogue offers: its "
        "flags by their own names, such as `batch-idle-duration: 1s`. Without this, none.",
        open=True,
    ),
    record(
        "horizontalPodAutoscaler",
        "Flags of the horizontal pod autoscaler of kube-controller-manager by their own names, "
        "with or without `horizontal-pod-autoscaler-` before them, such as `sync-period: 30s`.",
        open=True,
    ),
    record(
        "verticalPodAutoscaler",
        "Flags of recommender and updater of the vertical pod autoscaler by their own names, such "
        "as `recommendation-margin-fraction: 0.2` or `eviction-tolerance: 0.25`.",
        open=True,
    ),
    whole(
        "maxMinorSteps",
        "More minor steps than this in one step end the scenario as a livelock.",
        least=1,
        default="1000000",
    ),
    whole(
        "maxSettleRounds",
        "More rounds of the pre-simulation controllers than this, and 10 for every object, end it.",
        least=1,
        default="10000",
    ),
)
EXPECTATIONS = items_of(
    "expectations",
    "What must hold of the result, looked at when the scenario pauses and when it ends.",
    record(
        "",
        "An expectation: a sentence about the result that is true or false.",
        text("name", "Its name, which no other expectation has.", required=True),
        text("expression", "What must hold, in CEL: true or false.", required=True),
        text("message", "What to tell people where it does not hold."),
        text(
            "messageExpression",
            "The same in CEL: a text. Where it has no value, `message` is told.",
        ),
    ),
)

SPEC = record(
    "spec",
    "What happens, and who plays.",
    items_of("operations", "The operations, those of one step in list order.", OPERATION),
    items_of("events", "The same in the form of the KEP's drafts; one of the two.", OPERATION),
    CONTROLLERS,
    SIMULATION,
    EXPECTATIONS,
)

METADATA = record(
    "metadata",
    "As of every object.",
    text("name", "The scenario's name.", required=True),
    Field("labels", FieldType.OBJECT, "Labels.", is_map=True),
    Field("annotations", FieldType.OBJECT, "Annotations.", is_map=True),
    text("namespace", "Always empty: a Scenario belongs to none."),
    text("generateName", "As in Kubernetes; where a file is played, `name` is needed."),
    text("uid", "Set by the API."),
    text("resourceVersion", "Set by the API."),
    text("selfLink", "Set by the API."),
    whole("generation", "Set by the API."),
    text("creationTimestamp", "Set by the API."),
    text("deletionTimestamp", "Set by the API."),
    whole("deletionGracePeriodSeconds", "Set by the API."),
    items_of("finalizers", "As in Kubernetes.", text("", "A finalizer.")),
    items_of("ownerReferences", "As in Kubernetes.", record("", "An owner.", open=True)),
    items_of("managedFields", "Set by the API.", record("", "An entry.", open=True)),
    required=True,
)

SCENARIO_FIELDS = record(
    "",
    "A scenario of KEP-140.",
    text("apiVersion", f"`{SCENARIO.api_version}`.", required=True),
    text("kind", f"`{SCENARIO.kind}`.", required=True),
    METADATA,
    SPEC,
    record("status", "What came of it; written by the engine, ignored on input.", open=True),
)
