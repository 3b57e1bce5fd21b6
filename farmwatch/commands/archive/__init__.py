"""Commands that copy a log or parts of it: backup, restore, copy, export, release."""
