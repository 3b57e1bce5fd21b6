"""Words that several stages share."""

from __future__ import annotations

LLM, HUMAN, UNDECIDED, UNCLASSIFIABLE = "llm", "human", "undecided", "unclassifiable"
VERDICTS = (LLM, HUMAN, UNDECIDED, UNCLASSIFIABLE)  # of a site
DECIDED = (LLM, HUMAN)
