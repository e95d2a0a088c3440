"""What a kernel is, at its three levels: tile (what the user wrote), planned (roles, channels, layouts), thread
(instructions). Nodes are frozen and compared by identity; a rewrite returns the same object when nothing changed."""
