"""Searches against random landscapes with a known truth.

In:  seeds. Out: launches, and the share of right answers, per strategy.
Not: a real engine: what a landscape looks like is an assumption.
"""
