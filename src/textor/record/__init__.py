"""The record read again: iterations as they were, review, forks, replays."""
