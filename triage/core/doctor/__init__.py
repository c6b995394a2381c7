"""Judge what a machine is: facts in, findings out, each with evidence, fix and source."""
