"""What is known of a machine, as values: GPUs, host, packages, files. Read by triage.machine."""
