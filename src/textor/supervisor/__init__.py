"""Versions of Textor itself: built from tags of its repository, tried on a copy of the state, put in
the place of the running one at a step boundary, and taken back when they do not hold.

The supervisor and its trial are those of the program that a person installed and started: a version
under trial has no part in judging itself. Testing a new version in a nested instance before
switching to it is from the SIA document.
"""
