"""Prose by a person, which is long enough for the detectors when repeated."""

PROSE = (
    "When we got to the harbour it was already dark, and the man who had promised to take us across was nowhere to be "
    "seen. My brother said that he would ask in the bar, so I sat down on the bags and waited for him to come back. "
)
