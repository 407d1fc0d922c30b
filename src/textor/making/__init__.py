"""Modules that agents write: made, read, tried and kept."""
