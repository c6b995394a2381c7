"""Probes: which there are, what their outcomes mean, and what that changes of a diagnosis.

In:  events of a probe; a Diagnosis. Out: ProbeResult; a revised Diagnosis.
Not: the experiments (triage.probes) or running them (triage.launch.probe).
"""
