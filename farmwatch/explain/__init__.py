"""Why a page was kept or dropped."""
