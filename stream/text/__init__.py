"""Input and output of users: times, ids, numbers, files of lines, messages."""
