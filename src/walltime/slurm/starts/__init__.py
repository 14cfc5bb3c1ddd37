"""When the waiting jobs of a cluster will start."""
