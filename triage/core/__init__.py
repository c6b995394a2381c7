"""Values in, values out: no file, clock, process, terminal or random number."""
