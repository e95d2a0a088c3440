"""What a kernel does without a GPU: the tile machine for its meaning, the thread machine for its order."""
