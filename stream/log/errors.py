"""The errors of the log, each with the action of the loop or the operator."""

from __future__ import annotations

from stream.text.user_errors import FarmwatchError


class StreamError(FarmwatchError):
    """Any failure of the log or of a record; `retriable`: the same batch may succeed when it is tried again."""


class Fenced(StreamError):
    """Another member owns the partition now; nothing became visible. The loop rejoins, the operator does nothing."""

    retriable = True


class LogUnavailable(StreamError):
    """The log is unavailable, or its disk full or locked; nothing became visible. The operator restores it."""

    retriable = True


class NoLog(StreamError):
    """There is no log at the place that was named."""


class UnknownTopic(StreamError):
    """A topic is used that was never created, or is on the log under another prefix."""


class TopicMismatch(StreamError):
    """A topic has another number of partitions than configured: restore the old setting, or start a new prefix."""


class TooMuchExpired(StreamError):
    """Topics would lose too many records by age; none of these was removed. The operator checks the clock."""


class RecordTooLarge(StreamError):
    """A record for `topic` exceeds what the log takes; the input that it came from goes to the dead letters."""

    def __init__(self, said: str, topic: str, size_bytes: int) -> None:
        """`size_bytes`: of the value."""
        super().__init__(said)
        self.topic = topic
        self.size_bytes = size_bytes


class BadRecord(StreamError):
    """Bytes on a topic are not a valid record; they go to the dead letters."""


class RecordsExpired(BadRecord):
    """Retention took records before a stage read them: raise the topic's retention, or start more processes."""


class SchemaTooNew(BadRecord):
    """A record of a newer farmwatch: upgrade this process; the record waits in the dead letters."""
