"""What can go wrong on the log, and what the loop and the operator do about it."""

from __future__ import annotations


class StreamError(Exception):
    """Any failure of the log or of a record on it.

    `retriable` is for the stage loop: True means that the same batch may succeed when it is tried again.
    """

    retriable = False


class Fenced(StreamError):
    """Another member owns the partition now.

    Nothing of the batch became visible. The loop drops its local state and joins anew; the operator does nothing.
    """

    retriable = True


class LogUnavailable(StreamError):
    """The broker is away, or the disk of the embedded log is full or locked.

    Nothing of the batch became visible. The loop waits and tries again;
    the operator brings the broker back or frees disk.
    """

    retriable = True


class UnknownTopic(StreamError):
    """A topic is used that was never created. The operator runs `farmwatch topics --create` with the same prefix."""


class TopicMismatch(StreamError):
    """A topic exists with another number of partitions than configured.

    The number is chosen once: the operator restores the old setting, or starts a new topic prefix.
    """


class TooMuchExpired(StreamError):
    """Topics would lose more of their records by age than the call allows; none of these was removed.

    Caps on bytes, compaction and all other topics were dealt with. The caller waits until it is sure of the clock; the
    operator checks the clock.
    """


class RecordTooLarge(StreamError):
    """A record is above the log's cap; it goes to the dead letters in place of the topic."""


class BadRecord(StreamError):
    """Bytes on a topic that are no record of its type; they go to the dead letters."""


class RecordsExpired(BadRecord):
    """Retention removed records before a stage had read them.

    They are lost to it; a dead letter says which. The operator raises the topic's retention, or starts more processes.
    """


class SchemaTooNew(BadRecord):
    """A record was written by a newer farmwatch.

    The operator upgrades this process; the record waits in the dead letters.
    """
