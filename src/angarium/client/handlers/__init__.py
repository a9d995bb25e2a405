"""Handlers: functions that are called with the records of a group, and an app that runs them."""
