"""What a log refuses to take."""

from __future__ import annotations

from stream.errors import RecordTooLarge
from stream.log import RECORD_CAP_BYTES, Output


def check_size(output: Output) -> None:
    """Raises RecordTooLarge when the value of a record is above the log's cap."""
    if output.value is not None and len(output.value) > RECORD_CAP_BYTES:
        raise RecordTooLarge(
            f"a record of {len(output.value)} bytes for topic {output.topic!r} is above the cap of "
            f"{RECORD_CAP_BYTES} bytes"
        )
