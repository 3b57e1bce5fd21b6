"""Requests to the broker outside of groups: topics, offsets, groups. Connects at first use, from any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, MemberToRemove, OffsetSpec
from kafka.protocol.consumer import IsolationLevel

from stream.kafka.client import AdminClient
from stream.kafka.errors import translate_error, translated_errors
from stream.log.errors import LogUnavailable, StreamError, UnknownTopic

T = TypeVar("T")
_RETRY_S = 0.05
_SETTINGS_S = 1.0  # for settings to reach the queried broker
_MARKERS_S = 1.0  # the open transaction of a dead process may hold back the end for longer
_MARKERS_RETRY_S = 0.003
_NOT_READY = (
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.UnstableOffsetCommitError,
)
_NO_LEADER = kafka_errors.UnknownBrokerIdError  # -1: the election is not over; not marked as retriable


class KafkaAdmin:
    """One admin client, recreated after an error. Topics are full names with the log's prefix."""

    def __init__(self, options: Mapping[str, Any], patience_s: float) -> None:
        """Take the `options` of kafka-python; send nothing yet. Transient errors are raised after `patience_s`."""
        self._options = options
        self._patience_s = patience_s
        self._client: AdminClient | None = None
        self._lock = threading.Lock()
        # Open transactions of a dead process are waited for only once: partition -> held end, and groups.
        self._held: dict[TopicPartition, int] = {}
        self._open: set[str] = set()

    def topics(self) -> dict[str, int]:
        described = self._ask("list topics", lambda client: client.describe_topics())
        return {t["name"]: len(t["partitions"]) for t in described if not t["error_code"] and not t["is_internal"]}

    def topic_id(self, topic: str) -> str:
        """The id of a topic; a recreated topic has another one."""
        described = self._ask(f"look up {topic}", lambda client: client.describe_topics([topic]))
        if not described or described[0]["error_code"]:
            raise UnknownTopic(f"topic {topic} does not exist")
        return str(described[0]["topic_id"])

    def create(self, topics: Mapping[str, Mapping[str, Any]]) -> None:
        """Create topics, except those that exist by now. Waits until each has its leaders."""
        if not topics:
            return

        def ask(client: AdminClient) -> None:
            answer = client.create_topics(dict(topics), raise_errors=False)
            _check(answer["topics"], kafka_errors.TopicAlreadyExistsError)
            client.wait_for_topics(list(topics))

        self._ask("create topics", ask)

    def delete_topics(self, topics: Sequence[str]) -> None:
        """Delete existing topics and wait until they are gone. Raises StreamError if the broker refuses."""
        if not topics:
            return

        def ask(client: AdminClient) -> None:
            answer = client.delete_topics(list(topics), raise_errors=False)
            try:
                _check(answer["topics"], kafka_errors.UnknownTopicOrPartitionError)
            except kafka_errors.TopicDeletionDisabledError as error:
                raise StreamError(f"{error}: the broker deletes no topic; set delete.topic.enable there") from error

        self._ask("delete topics", ask)
        give_up_at = time.monotonic() + self._patience_s
        while left := self.topics().keys() & set(topics):
            if time.monotonic() > give_up_at:
                raise LogUnavailable(f"delete topics: {', '.join(sorted(left))} still there after {self._patience_s} s")
            time.sleep(_RETRY_S)

    def sizes(self, topics: Sequence[str]) -> dict[str, int]:
        if not topics:
            return {}

        def ask(client: AdminClient) -> dict[TopicPartition, int]:
            largest: dict[TopicPartition, int] = {}
            for answer in client.describe_log_dirs(list(topics)):
                for folder in answer["log_dirs"]:
                    if folder["error_code"]:
                        raise kafka_errors.for_code(folder["error_code"])(f"broker {answer['broker']}")
                    for topic in folder["topics"]:
                        for partition in topic["partitions"]:
                            at = TopicPartition(topic["name"], partition["partition_index"])
                            largest[at] = max(largest.get(at, 0), partition["partition_size"])
            return largest

        sizes = dict.fromkeys(topics, 0)
        for at, size in self._ask("sizes of topics", ask).items():
            sizes[at.topic] += size
        return sizes

    def topic_settings(self, topics: Sequence[str], keys: Sequence[str] | None = None) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, keys) for topic in topics]
        described = self._ask("topic settings", lambda client: client.describe_configs(resources, config_filter="all"))
        of_topics: Mapping[str, Mapping[str, Mapping[str, Any]]] = described.get("topic", {})
        return {topic: {key: str(s["value"]) for key, s in settings.items()} for topic, settings in of_topics.items()}

    def set_topic_settings(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Set these settings and wait until the broker returns them. Raises StreamError if the broker refuses."""
        if not changes:
            return
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, dict(keys)) for topic, keys in changes.items()]
        done = self._ask(
            "set topic settings",
            lambda client: client.alter_configs(resources, raise_on_unknown=False, incremental=True),
        )
        failed = {topic: result for topic, result in done.get("topic", {}).items() if result != "OK"}
        for topic in sorted(failed.keys() & self.topics().keys() if failed else ()):
            raise StreamError(
                f"topic {topic}: the broker does not set {', '.join(sorted(changes[topic]))}: {failed[topic]}; "
                "give this client the right to alter the configuration of topics"
            )
        wanted = {topic: settings for topic, settings in changes.items() if topic not in failed}
        names = sorted({key for settings in wanted.values() for key in settings})
        give_up_at = time.monotonic() + _SETTINGS_S
        while wanted and time.monotonic() < give_up_at:
            current = self.topic_settings(list(wanted), names)
            if all(settings.items() <= current.get(topic, {}).items() for topic, settings in wanted.items()):
                return
            time.sleep(_RETRY_S)

    def broker_version(self) -> str:
        return self._ask("broker version", lambda client: client.broker_version())

    def beginning(self, at: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(dict.fromkeys(at, OffsetSpec.EARLIEST), IsolationLevel.READ_COMMITTED)

    def stable_end(self, at: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The last stable offset; waits up to 1 s, once per transaction, for markers that are due."""
        written = self.written_end(at)
        give_up_at = time.monotonic() + _MARKERS_S
        while True:
            stable = self._offsets(dict.fromkeys(at, OffsetSpec.LATEST), IsolationLevel.READ_COMMITTED)
            unstable = {one: stable[one] for one in at if stable[one] < written[one]}
            if time.monotonic() > give_up_at:
                self._held.update(unstable)
            if all(self._held.get(one) == end for one, end in unstable.items()):
                return stable
            time.sleep(_MARKERS_RETRY_S)

    def written_end(self, at: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(dict.fromkeys(at, OffsetSpec.LATEST), IsolationLevel.READ_UNCOMMITTED)

    def offsets_at(self, at: Sequence[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        """First offset with a timestamp >= time_ms; -1 if there is none."""
        return self._offsets(dict.fromkeys(at, time_ms), IsolationLevel.READ_COMMITTED)

    def committed(self, group: str, at: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Existing committed offsets; waits up to 1 s, once per group, for markers that are due."""
        markers_until = time.monotonic() + _MARKERS_S

        def ask(client: AdminClient) -> Any:
            client.stable = True
            try:
                offsets = client.list_group_offsets({group: list(at)})
            except kafka_errors.UnstableOffsetCommitError:
                if group not in self._open and time.monotonic() < markers_until:
                    raise
                self._open.add(group)
                client.stable = False
                return client.list_group_offsets({group: list(at)})
            self._open.discard(group)
            return offsets

        offsets = self._ask(f"offsets of {group}", ask)
        return {tp: known.offset for tp, known in offsets.get(group, {}).items() if known.offset >= 0}

    def reset(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        results = self._ask(f"reset {group}", lambda client: client.reset_group_offsets(group, dict(offsets)))
        for at, result in results.items():
            if result["error"] in (kafka_errors.UnknownMemberIdError, kafka_errors.RebalanceInProgressError):
                raise StreamError(f"group {group} has live members: stop them before its offsets are set")
            if result["error"] is not kafka_errors.NoError:
                raise translate_error(result["error"](), f"reset of {group} on {at.topic}-{at.partition}")

    def groups(self, prefix: str) -> list[str]:
        listed = self._ask("list groups", lambda client: client.list_groups())
        return [group["group_id"] for group in listed if group["group_id"].startswith(prefix)]

    def truncate(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Delete the records below these offsets."""
        self._ask("delete records", lambda client: client.delete_records(dict(offsets)))

    def members(self, group: str) -> list[str]:
        """Static names of a group's current members; for other members their client's name."""

        def ask(client: AdminClient) -> Any:
            described = client.describe_groups([group]).get(group, {})
            error = described.get("error")
            if error and kafka_errors.GroupIdNotFoundError.__name__ not in error:
                raise kafka_errors.CoordinatorNotAvailableError(error)
            return described.get("members") or ()

        return [str(m.get("group_instance_id") or m.get("client_id")) for m in self._ask(f"members of {group}", ask)]

    def delete_groups(self, groups: Sequence[str]) -> None:
        """Delete existing groups with their offsets. Raises StreamError if one has members."""
        if not groups:
            return

        def ask(client: AdminClient) -> None:
            for group, result in client.delete_groups(list(groups)).items():
                if result == kafka_errors.NonEmptyGroupError.__name__:
                    raise StreamError(f"group {group} has live members: stop them before it is removed")
                if result not in ("OK", kafka_errors.GroupIdNotFoundError.__name__):
                    raise getattr(kafka_errors, result)(f"group {group}")

        self._ask("delete groups", ask)

    def remove(self, group: str, instance: str, member_id: str) -> None:
        """Remove a static member, if `member_id` still holds the name."""
        leaving = [MemberToRemove(member_id=member_id, group_instance_id=instance)]
        self._ask(f"leave {group}", lambda client: client.remove_group_members(group, leaving))

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _offsets(self, specs: Mapping[TopicPartition, Any], isolation: Any) -> dict[TopicPartition, int]:
        if not specs:
            return {}
        results = self._ask(
            "offsets", lambda client: client.list_partition_offsets(dict(specs), isolation_level=isolation)
        )
        return {at: result.offset for at, result in results.items()}

    def _ask(self, doing: str, question: Callable[[AdminClient], T]) -> T:
        """Ask the broker. Retries transient refusals for `patience_s`, over a new connection if it broke."""
        give_up_at = time.monotonic() + self._patience_s
        with self._lock, translated_errors(doing):
            while True:
                try:
                    if self._client is None:
                        self._client = self._connect()
                    return question(self._client)
                except (kafka_errors.KafkaError, OSError) as error:
                    if not isinstance(error, _NOT_READY):
                        self._disconnect()
                    lasting = isinstance(error, kafka_errors.UnknownTopicOrPartitionError)  # "retriable" there
                    passes = getattr(error, "retriable", False) or isinstance(error, _NO_LEADER)
                    if lasting or not passes or time.monotonic() > give_up_at:
                        raise
                time.sleep(_RETRY_S)

    def _connect(self) -> AdminClient:
        try:
            return AdminClient(**self._options)
        except kafka_errors.KafkaTimeoutError as error:
            servers = ", ".join(self._options["bootstrap_servers"])
            raise kafka_errors.KafkaTimeoutError(
                f"no broker at {servers} takes this client: kafka.client must have the protocol, the SASL mechanism,"
                " the certificate, the user and the password of its listener"
            ) from error

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _check(topics: Iterable[Mapping[str, Any]], fine: type[Exception]) -> None:
    """Raise the error of the first refused topic, except errors in `fine`."""
    for topic in topics:
        error = kafka_errors.for_code(topic["error_code"])
        if error not in (kafka_errors.NoError, fine):
            raise error(f"{topic['name']}: {topic.get('error_message')}")
