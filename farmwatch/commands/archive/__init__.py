"""Commands that carry a log away: backup, restore, copy, export, release."""
