"""Ways to do a copy, one file each."""
