"""What follows from a decision for a node: the pod is assumed there, and its binding begins.

A binding that has to wait is put by (`waiting_bindings`), and goes on in a loop of its own when the
wait is over; what goes wrong in it turns the decision into a failure.
"""

from kubescene.client.interfaces import ObjectRef
from kubescene.errors import ApiError, PluginError
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.extenders.extenders import Extenders
from kubescene.scheduler.framework.informers import POD
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling import notices
from kubescene.scheduler.telling.annotations import annotated
from kubescene.scheduler.telling.attempt_ends import AttemptEnds
from kubescene.scheduler.telling.failures import refuse


class Placing(AttemptEnds):
    """The part of a scheduler that places pods. What is said here is made by the others."""

    waiting_pods: WaitingRoom
    _asking: list[Binding]
    _extenders: Extenders

    def _place(self, entry: QueuedPod, decision: Decision) -> bool:
        """Assume the pod on its node and begin to bind it."""
        return self._bind(self._assume(entry, decision))

    def _assume(self, entry: QueuedPod, decision: Decision) -> Binding:
        pod = entry.pod
        assumed = pod.assumed(decision.node)  # N-8
        self._placed[pod.uid] = assumed
        self.nodes.add_pod(assumed, decision.node)
        if pod.spec.group:
            self.nominations.remove(pod)
            self.pod_groups.assume(pod.namespace, pod.group, pod.uid)
        return self._make_binding(entry, decision, assumed)

    def _make_binding(self, entry: QueuedPod, decision: Decision, assumed: PodInfo) -> Binding:
        return Binding(
            entry,
            decision,
            assumed,
            self._cycles[assumed.scheduler_name].framework,
            room=self.waiting_pods,
            timers=self._timers,
            extenders=self._extenders,
            annotate=self._annotations_of if self._annotates else None,
        )

    def _annotations_of(self, binding: Binding) -> dict[str, str]:
        return annotated(binding.entry.pod, binding.framework, binding.decision, binding)

    def _bind(self, binding: Binding) -> bool:
        """Go on with a binding; what goes wrong turns the decision into a failure."""
        try:
            status = self._run_binding(binding)
        except Exception:
            self._recover(binding.entry)
            binding.undo()
            raise
        if status is None:
            return self._let_wait(binding)
        if self._bindings.all:
            self._bindings.remove(binding.pod.uid)
        if binding.bound_by_extender and self._placed.get(binding.pod.uid) is binding.pod:
            # It says so, but no binding came through the API: it is written on its behalf.
            status = binding.bind_by_plugin()
        if not status.ok:
            return self._undo(binding, status)
        entry, decision = binding.entry, binding.decision
        self.queue.done(entry)
        self._post_bind(binding)
        if self._recorder.on:
            self._recorder.tell(notices.scheduled(entry.pod, decision.node))
        if self._annotates and (decision.state.annotations or binding.bound_by_extender):
            self._annotate_later(binding)
        placed = self._placed.get(binding.pod.uid, binding.pod)
        self._report(entry.pod, decision, placed.record)
        return True

    def _annotate_later(self, binding: Binding) -> None:
        """Somebody else than our binder has bound the pod: annotations are a write of their own."""
        pod, annotations = binding.entry.pod, self._annotations_of(binding)
        ref = ObjectRef(POD, pod.name, pod.namespace)
        try:
            self._client.patch(ref, {"metadata": {"annotations": annotations}})
        except ApiError:
            # As with conditions: the pod may have gone in the meantime.
            return

    def _run_binding(self, binding: Binding) -> Status | None:
        try:
            return binding.run()
        except PluginError as error:
            self._blamed(binding.decision, error)
            return Status.error(str(error))

    def _post_bind(self, binding: Binding) -> None:
        """What goes wrong here changes nothing: the pod is bound."""
        try:
            binding.post_bind()
        except PluginError as error:
            binding.decision.traceback = self._bear(error)

    def _let_wait(self, binding: Binding) -> bool:
        """A binding waits: others are told which node the pod is about to get."""
        known = binding.pod.uid in self._bindings
        self._bindings.add(binding)
        if binding.awaits_extender:
            self._asking.append(binding)
        if known or binding.entry.pod.nominated_node == binding.decision.node:
            return False
        patch = {"nominatedNodeName": binding.decision.node}
        return self._patch_status(binding.pod, patch) is not None

    def _undo(self, binding: Binding, status: Status) -> bool:
        """Give back what the pod held, and put it back into the queue."""
        assumed = binding.pod
        try:
            binding.undo()
        except PluginError as error:
            binding.decision.traceback += self._bear(error)
        held = self._forget(assumed)
        refuse(binding.decision, status)
        own = status.code.is_rejection
        if held and binding.held_room and not own:
            self._room_was_made(assumed)
        wrote = self._failed(binding.entry, binding.decision, binding)
        if held and binding.held_room and own:
            self._room_was_made(assumed, except_uid=assumed.uid)
        return wrote
