"""The first state of a recording: a snapshot that changes follow, which `replayOperation` plays."""

from kubescene.clock import format_micro_time
from kubescene.histories.recordings import RecordingReader as Recordings
from kubescene.histories.recordings import SimulatorRecordReader as SimulatorRecords
from kubescene.snapshots.readers.interface import FoundObjects
from kubescene.snapshots.sources import SnapshotSource


class FirstStateReader:
    name = "recording"
    about = "kubescene record, or the recorder of kube-scheduler-simulator: how it began"
    _forms = (Recordings(), SimulatorRecords())

    def detects(self, source: SnapshotSource) -> bool:
        return not source.has_files and any(each.detects(source.head) for each in self._forms)

    def read(self, source: SnapshotSource) -> FoundObjects:
        form = next((each for each in self._forms if each.detects(source.head)), self._forms[0])
        history = form.open(source.path)
        return FoundObjects(
            history.objects, list(history.remarks), taken_at=format_micro_time(history.began_at)
        )
