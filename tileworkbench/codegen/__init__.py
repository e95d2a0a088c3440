"""From a thread-level kernel to text of a C dialect."""
