"""Commands that add hits, labels or learned numbers."""
