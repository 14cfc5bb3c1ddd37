"""Job logs before a simulation: the commands fetch, info, convert, clean, mapping and generate."""
