"""The measures of one page, in worker processes that can be killed."""
