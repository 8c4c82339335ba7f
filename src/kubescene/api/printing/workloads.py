"""Rows of what runs pods: deployments and their kin, jobs, disruption budgets, pod groups."""

from kubescene.api.printing.tables import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    Cells,
    TableColumns,
    age,
    boolean,
    condition,
    container_texts,
    dig,
    human_duration,
    integer,
    is_true,
    labels_text,
    name_of,
    selector_text,
    since,
    text,
    wide,
    yes_or_no,
)
from kubescene.clock.timestamps import parse_time
from kubescene.types import JsonObject, Nanoseconds

_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def deployment_row(deployment: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(deployment),
        _ready_of_desired(deployment),
        dig(deployment, "status.updatedReplicas", 0),
        dig(deployment, "status.availableReplicas", 0),
        age(deployment, now),
        *container_texts(dig(deployment, "spec.template.spec")),
        selector_text(dig(deployment, "spec.selector"), broken="<invalid>", empty=""),
    ]


def replica_set_row(replica_set: JsonObject, now: Nanoseconds) -> Cells:
    return [
        *_replica_cells(replica_set, now),
        *container_texts(dig(replica_set, "spec.template.spec")),
        selector_text(dig(replica_set, "spec.selector")),
    ]


def replication_controller_row(controller: JsonObject, now: Nanoseconds) -> Cells:
    return [
        *_replica_cells(controller, now),
        *container_texts(dig(controller, "spec.template.spec")),
        labels_text(dig(controller, "spec.selector")),
    ]


def _replica_cells(obj: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(obj),
        dig(obj, "spec.replicas", 1),
        dig(obj, "status.replicas", 0),
        dig(obj, "status.readyReplicas", 0),
        age(obj, now),
    ]


def _ready_of_desired(obj: JsonObject) -> str:
    return f"{dig(obj, 'status.readyReplicas', 0)}/{dig(obj, 'spec.replicas', 1)}"


def stateful_set_row(stateful_set: JsonObject, now: Nanoseconds) -> Cells:
    containers = container_texts(dig(stateful_set, "spec.template.spec"))
    ready = _ready_of_desired(stateful_set)
    return [name_of(stateful_set), ready, age(stateful_set, now), *containers]


def daemon_set_row(daemon_set: JsonObject, now: Nanoseconds) -> Cells:
    status = dig(daemon_set, "status", {})
    return [
        name_of(daemon_set),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels_text(dig(daemon_set, "spec.template.spec.nodeSelector")),
        age(daemon_set, now),
        *container_texts(dig(daemon_set, "spec.template.spec")),
        selector_text(dig(daemon_set, "spec.selector")),
    ]


def controller_revision_row(revision: JsonObject, now: Nanoseconds) -> Cells:
    owners = dig(revision, "metadata.ownerReferences", ())
    owner = next((o for o in owners if o.get("controller")), None)
    return [name_of(revision), _owner_text(owner), revision.get("revision", 0), age(revision, now)]


def _owner_text(owner: JsonObject | None) -> str:
    if owner is None:
        return NONE
    group, kind = owner["apiVersion"].rpartition("/")[0], owner["kind"].lower()
    return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"


def job_row(job: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(job),
        _job_status(job),
        _completions(job),
        _job_duration(job, now),
        age(job, now),
        *container_texts(dig(job, "spec.template.spec")),
        selector_text(dig(job, "spec.selector")),
    ]


def _job_status(job: JsonObject) -> str:
    for outcome in ("Complete", "Failed"):
        if is_true(job, outcome):
            return outcome
    if dig(job, "metadata.deletionTimestamp") is not None:
        return "Terminating"
    return next((state for state in _JOB_STATES if is_true(job, state)), "Running")


def _completions(job: JsonObject) -> str:
    succeeded = dig(job, "status.succeeded", 0)
    wanted = dig(job, "spec.completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = dig(job, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: JsonObject, now: Nanoseconds) -> str:
    started, completed = dig(job, "status.startTime"), dig(job, "status.completionTime")
    if started is None:
        return ""
    end = now if completed is None else parse_time(completed)
    return human_duration(end - parse_time(started))


def cron_job_row(cron_job: JsonObject, now: Nanoseconds) -> Cells:
    last = dig(cron_job, "status.lastScheduleTime")
    return [
        name_of(cron_job),
        dig(cron_job, "spec.schedule", ""),
        dig(cron_job, "spec.timeZone", NONE),
        yes_or_no(dig(cron_job, "spec.suspend")),
        len(dig(cron_job, "status.active", ())),
        since(last, now) if last else NONE,
        age(cron_job, now),
        *container_texts(dig(cron_job, "spec.jobTemplate.spec.template.spec")),
        selector_text(dig(cron_job, "spec.jobTemplate.spec.selector")),
    ]


def disruption_budget_row(budget: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(budget),
        str(dig(budget, "spec.minAvailable", "N/A")),
        str(dig(budget, "spec.maxUnavailable", "N/A")),
        dig(budget, "status.disruptionsAllowed", 0),
        age(budget, now),
    ]


def priority_class_row(priority_class: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(priority_class),
        priority_class.get("value", 0),
        bool(priority_class.get("globalDefault")),
        age(priority_class, now),
        priority_class.get("preemptionPolicy") or "",
    ]


def pod_group_row(group: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(group),
        "Basic" if dig(group, "spec.schedulingPolicy.gang") is None else "Gang",
        dig(group, "spec.podGroupTemplateRef.workload.workloadName", NONE),
        _pod_group_status(group),
        age(group, now),
    ]


def _pod_group_status(group: JsonObject) -> str:
    if disruption := condition(group, "DisruptionTarget"):
        return str(disruption.get("reason", ""))
    if condition(group, "PodGroupScheduled") is None:
        return "Pending"
    return "Scheduled" if is_true(group, "PodGroupScheduled") else "Unschedulable"


_TEMPLATE = (CONTAINERS, IMAGES)

DEPLOYMENT = TableColumns(
    (
        NAME,
        text("Ready", "Number of the pod with ready state"),
        text("Up-to-date", "@apps.v1.DeploymentStatus.updatedReplicas"),
        text("Available", "@apps.v1.DeploymentStatus.availableReplicas"),
        AGE,
        *_TEMPLATE,
        wide("Selector", "@apps.v1.DeploymentSpec.selector"),
    ),
    deployment_row,
)
REPLICA_SET = TableColumns(
    (
        NAME,
        integer("Desired", "@apps.v1.ReplicaSetSpec.replicas"),
        integer("Current", "@apps.v1.ReplicaSetStatus.replicas"),
        integer("Ready", "@apps.v1.ReplicaSetStatus.readyReplicas"),
        AGE,
        *_TEMPLATE,
        wide("Selector", "@apps.v1.ReplicaSetSpec.selector"),
    ),
    replica_set_row,
)
REPLICATION_CONTROLLER = TableColumns(
    (
        NAME,
        integer("Desired", "@core.v1.ReplicationControllerSpec.replicas"),
        integer("Current", "@core.v1.ReplicationControllerStatus.replicas"),
        integer("Ready", "@core.v1.ReplicationControllerStatus.readyReplicas"),
        AGE,
        *_TEMPLATE,
        wide("Selector", "@core.v1.ReplicationControllerSpec.selector"),
    ),
    replication_controller_row,
)
STATEFUL_SET = TableColumns(
    (NAME, text("Ready", "Number of the pod with ready state"), AGE, *_TEMPLATE),
    stateful_set_row,
)
DAEMON_SET = TableColumns(
    (
        NAME,
        integer("Desired", "@apps.v1.DaemonSetStatus.desiredNumberScheduled"),
        integer("Current", "@apps.v1.DaemonSetStatus.currentNumberScheduled"),
        integer("Ready", "@apps.v1.DaemonSetStatus.numberReady"),
        integer("Up-to-date", "@apps.v1.DaemonSetStatus.updatedNumberScheduled"),
        integer("Available", "@apps.v1.DaemonSetStatus.numberAvailable"),
        text("Node Selector", "@core.v1.PodSpec.nodeSelector"),
        AGE,
        *_TEMPLATE,
        wide("Selector", "@apps.v1.DaemonSetSpec.selector"),
    ),
    daemon_set_row,
)
CONTROLLER_REVISION = TableColumns(
    (
        NAME,
        text("Controller", "Controller of the object"),
        text("Revision", "@apps.v1.ControllerRevision.revision"),
        AGE,
    ),
    controller_revision_row,
)
JOB = TableColumns(
    (
        NAME,
        text("Status", "Status of the job."),
        text("Completions", "@batch.v1.JobStatus.succeeded"),
        text("Duration", "Time required to complete the job."),
        AGE,
        *_TEMPLATE,
        wide("Selector", "@batch.v1.JobSpec.selector"),
    ),
    job_row,
)
CRON_JOB = TableColumns(
    (
        NAME,
        text("Schedule", "@batch.v1.CronJobSpec.schedule"),
        text("Timezone", "@batch.v1.CronJobSpec.timeZone"),
        boolean("Suspend", "@batch.v1.CronJobSpec.suspend"),
        integer("Active", "@batch.v1.CronJobStatus.active"),
        text("Last Schedule", "@batch.v1.CronJobStatus.lastScheduleTime"),
        AGE,
        *_TEMPLATE,
        wide("Selector", "@batch.v1.JobSpec.selector"),
    ),
    cron_job_row,
)
DISRUPTION_BUDGET = TableColumns(
    (
        NAME,
        text("Min Available", "The minimum number of pods that must be available."),
        text("Max Unavailable", "The maximum number of pods that may be unavailable."),
        integer(
            "Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."
        ),
        AGE,
    ),
    disruption_budget_row,
)
PRIORITY_CLASS = TableColumns(
    (
        NAME,
        integer("Value", "@scheduling.v1.PriorityClass.value"),
        boolean("Global-Default", "@scheduling.v1.PriorityClass.globalDefault"),
        AGE,
        text("PreemptionPolicy", "@scheduling.v1.PriorityClass.preemptionPolicy"),
    ),
    priority_class_row,
)
POD_GROUP = TableColumns(
    (
        NAME,
        text("Policy", "@scheduling.v1alpha2.PodGroupSpec.schedulingPolicy"),
        text("Workload", "Name of the referenced Workload object"),
        text("Status", "Status of the PodGroup"),
        AGE,
    ),
    pod_group_row,
)
