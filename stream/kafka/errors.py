"""Translates errors of kafka-python into errors of the log contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka import errors as kafka_errors

from stream.log.errors import Fenced, LogUnavailable, StreamError, UnknownTopic

# Another member took over the partitions, or the name.
FENCING = (
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.FencedInstanceIdError,
    kafka_errors.CommitFailedError,
    kafka_errors.IllegalGenerationError,
    kafka_errors.UnknownMemberIdError,
)
# Retrying does not help: the operator must act.
_REFUSED = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.KafkaConfigurationError,
    kafka_errors.UnsupportedVersionError,
    kafka_errors.CorruptRecordError,
    kafka_errors.InvalidGroupIdError,
    kafka_errors.InvalidSessionTimeoutError,
    kafka_errors.InconsistentGroupProtocolError,
    kafka_errors.InvalidTransactionTimeoutError,
)


def translate_error(error: BaseException, doing: str) -> StreamError:
    """Translate `error` into an error of the contract; `doing` names the attempt ("commit of group judge")."""
    said = f"{doing}: {type(error).__name__}: {error}"
    if isinstance(error, StreamError):
        return error
    if isinstance(error, FENCING):
        return Fenced(said)
    if isinstance(error, kafka_errors.UnknownTopicOrPartitionError | kafka_errors.InvalidTopicError):
        return UnknownTopic(said)
    if isinstance(error, _REFUSED):
        return StreamError(f"{said}; the broker refuses this client: check its settings and rights")
    return LogUnavailable(f"{said}; retrying, check that the broker is up")


@contextmanager
def translated_errors(doing: str) -> Iterator[None]:
    """Translate errors of kafka-python that leave the block."""
    try:
        yield
    except (kafka_errors.KafkaError, OSError) as error:
        raise translate_error(error, doing) from error
