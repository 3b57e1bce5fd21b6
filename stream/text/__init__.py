"""What users write and read: times, ids, numbers, files of lines, messages."""
