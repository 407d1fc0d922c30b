"""The module `files`: reading and changing files below some folders (`python -m textor.modules.files`)."""
