"""Planning: which role does what, through which channels, in which order."""
